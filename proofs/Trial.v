(* For sound tables the executable trial accepts only if (u + 1) W <= R and rejects only if R <= u W. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz Floats.
From Flocq Require Import Core.
From Interval Require Import Tactic.
From Dpnoise Require Import Rounding Exponential Decision Model Machine Kernel Sound.
Import ListNotations.
Open Scope R_scope.
Notation float := Coq.Floats.PrimFloat.float.

Lemma is_one : is 1%float 1.
Proof. eapply constant_is; [vm_compute; reflexivity|unfold F2R; simpl; lra]. Qed.

Lemma below_one : double (1 - eta2).
Proof. apply generic_format_FLT. exists (Float radix2 268435455 (-28)); simpl; [unfold F2R; simpl; lra|lia|lia]. Qed.

Lemma above_one : double (1 + eta2).
Proof. apply generic_format_FLT. exists (Float radix2 268435457 (-28)); simpl; [unfold F2R; simpl; lra|lia|lia]. Qed.

Section Judged.
Variables (l : law) (t : tables).
Hypothesis S : sound l t = true.
Let facts := sound_facts l t S.

(* R = C m 2^e f(x) 2^63, of which u W and (u + 1) W are the thresholds. *)
Definition right_side (bits : Z) (copies x : Z) : R := IZR (amplitude t) * (bpow radix2 (copies + bits) * density l x).

(* The true exponent of two, and that of the kernel: within ten units of rounding. *)
Definition exponent (x : Z) : R := IZR (dividend l x) / IZR (divisor l) / ln 2.

Lemma ln2_positive : 0 < ln 2. Proof. rewrite <- ln_1. apply ln_increasing; lra. Qed.

Lemma divisor_is_positive : 0 < IZR (divisor l).
Proof. apply IZR_lt, divisor_positive, numerator_positive with (1 := facts). Qed.

Lemma exponent_nonnegative x : (0 <= x)%Z -> 0 <= exponent x.
Proof.
  intros H. unfold exponent. generalize divisor_is_positive ln2_positive. intros D L.
  assert (0 <= IZR (dividend l x)).
  { apply IZR_le. generalize (denominator_positive _ _ facts). unfold dividend. intros.
    assert (0 <= x * denominator l)%Z by nia.
    destruct (gaussian l); [apply Z.pow_nonneg|]; assumption. }
  unfold Rdiv. repeat apply Rmult_le_pos; try assumption; apply Rlt_le, Rinv_0_lt_compat; assumption.
Qed.

Lemma density_is_power x : density l x = exp (- exponent x * ln 2).
Proof. unfold density, exponent. f_equal. generalize divisor_is_positive ln2_positive. intros. field. split; lra. Qed.

Lemma exponent_by_rate x : exponent x = exponent 1 * (if gaussian l then IZR x * IZR x else IZR x).
Proof.
  unfold exponent, dividend. generalize divisor_is_positive ln2_positive. intros. destruct (gaussian l).
  - rewrite !Z.pow_2_r, !mult_IZR. field. split; lra.
  - rewrite !mult_IZR. field. split; lra.
Qed.

(* The exponent as the kernel computes it from the rate r. *)
Definition computed (x : Z) (r : R) : R :=
  rnd ((if square t then rnd (rnd (IZR x) * rnd (IZR x)) else rnd (IZR x)) * r).

Lemma computed_exponent x r d : (0 <= x < 2 ^ 60)%Z -> r = exponent 1 * (1 + d) -> Rabs d <= 6 * u53 ->
  bpow radix2 (-300) <= r <= bpow radix2 53 ->
  0 <= computed x r <= bpow radix2 200 /\ exists m, Rabs m <= 1001/100 * u53 /\ computed x r = exponent x * (1 + m).
Proof.
  intros Hx Hr Hd Br. unfold computed. rewrite (same_shape _ _ facts).
  destruct (Z.eq_dec x 0) as [->|N].
  - assert (Z0 : rnd (IZR 0) = 0) by (apply rnd_double, generic_format_0).
    assert (E : (if gaussian l then rnd (rnd 0 * rnd 0) else rnd 0) = 0).
    { rewrite Z0. destruct (gaussian l); [rewrite Rmult_0_l; exact Z0|reflexivity]. }
    rewrite E, Rmult_0_l, Z0. split; [split; [lra|apply bpow_ge_0]|]. exists 0. rewrite Rabs_R0. split; [lra|].
    rewrite exponent_by_rate. destruct (gaussian l); ring.
  - assert (X1 : 1 <= IZR x) by (apply IZR_le; lia).
    assert (X2 : IZR x <= bpow radix2 60) by (change (bpow radix2 60) with (IZR (2 ^ 60)); apply IZR_le; lia).
    assert (Big : forall y, 1/4 <= y -> bpow radix2 (-1000) <= Rabs y).
    { intros y H. rewrite Rabs_pos_eq by lra.
      apply Rle_trans with (bpow radix2 (-2)); [apply bpow_le; lia|simpl; lra]. }
    destruct (rounding (IZR x)) as [a [Ha A]]; [right; apply Big; lra|].
    assert (Y : exists b, Rabs b <= 3001/1000 * u53 /\
      (if gaussian l then rnd (rnd (IZR x) * rnd (IZR x)) else rnd (IZR x)) = (if gaussian l then IZR x * IZR x else
        IZR x) * (1 + b)).
    { destruct (gaussian l).
      - assert (G : 1/4 <= rnd (IZR x) * rnd (IZR x)) by (rewrite A; apply Rabs_le_inv in Ha;
          assert (1/2 <= IZR x * (1 + a)) by nra; nra).
        destruct (rounding (rnd (IZR x) * rnd (IZR x))) as [c [Hc C]]; [right; apply Big, G|].
        exists ((1 + a) * (1 + a) * (1 + c) - 1). split; [|rewrite C, A; ring].
        apply Rabs_le_inv in Ha. apply Rabs_le_inv in Hc. apply Rabs_le. split; interval with (i_prec 120).
      - exists a. split; [lra|exact A]. }
    destruct Y as [b [Hb Y]]. rewrite Y. rewrite (exponent_by_rate x).
    set (p := if gaussian l then IZR x * IZR x else IZR x).
    assert (P : 1 <= p <= bpow radix2 120).
    { unfold p. change (bpow radix2 120) with (bpow radix2 (60 + 60)). rewrite bpow_plus.
      assert (1 <= bpow radix2 60) by (apply (bpow_le radix2 0); lia).
      destruct (gaussian l); split; nra. }
    assert (Rp : 0 < r) by (eapply Rlt_le_trans; [apply bpow_gt_0|apply Br]).
    apply Rabs_le_inv in Hb. assert (Hb' : 1/2 <= 1 + b <= 2) by lra.
    assert (Q : 1/2 * r <= p * (1 + b) * r <= bpow radix2 174).
    { split; [apply Rmult_le_compat_r; [lra|]; nra|].
      change (bpow radix2 174) with (bpow radix2 (121 + 53)). rewrite bpow_plus. apply Rmult_le_compat; try lra; [nra|].
      change (bpow radix2 121) with (bpow radix2 (120 + 1)). rewrite bpow_plus. simpl (bpow radix2 1).
      apply Rmult_le_compat; lra. }
    destruct (rounding (p * (1 + b) * r)) as [c [Hc C]].
    { right. rewrite Rabs_pos_eq by nra. apply Rle_trans with (1/2 * r); [|lra].
      apply Rle_trans with (bpow radix2 (-1) * bpow radix2 (-300)).
      - rewrite <- bpow_plus. apply bpow_le. lia.
      - simpl (bpow radix2 (-1)). apply Rmult_le_compat; try lra. apply bpow_ge_0. }
    split.
    + split; [apply rnd_nonnegative; lra|]. apply Rle_trans with (Rabs (rnd (p * (1 + b) * r))); [apply Rle_abs|].
      apply rnd_bound; [lia|]. rewrite Rabs_pos_eq by lra. eapply Rle_trans; [apply Q|apply bpow_le; lia].
    + exists ((1 + d) * (1 + b) * (1 + c) - 1). split; [|rewrite C, Hr; ring].
      apply Rabs_le_inv in Hd. apply Rabs_le_inv in Hc. apply Rabs_le. split; interval with (i_prec 120).
Qed.

Lemma uniform_bound u : (0 <= u < 2 ^ 63)%Z -> 0 <= rnd (IZR u) <= bpow radix2 63.
Proof.
  intros H. split; [apply rnd_nonnegative, IZR_le; lia|]. eapply Rle_trans; [apply Rle_abs|]. apply rnd_bound; [lia|].
  rewrite Rabs_pos_eq by (apply IZR_le; lia). change (bpow radix2 63) with (IZR (2 ^ 63)). apply IZR_le. lia.
Qed.

Lemma exact_float z : (0 <= z < 2 ^ 32)%Z -> is (float_of z) (IZR z).
Proof. intros H. rewrite <- (rnd_double (IZR z)) by (apply whole_double; lia). apply float_of_is. lia. Qed.

Theorem judge_is_right fused x e W u : (0 <= x < 2 ^ 60)%Z -> (0 <= e <= 4)%Z -> (1 <= W < 2 ^ 32)%Z
  -> (0 <= u < 2 ^ 63)%Z ->
  let '(below, above) := judge fused t x e W u in
  (below = true -> (IZR u + 1) * IZR W <= right_side 63 e x) /\ (above = true -> right_side 63 e x <= IZR u * IZR W).
Proof.
  intros Hx He HW Hu. destruct (rate_value _ _ facts) as [d [Ir Hd]]. destruct (rate_range _ _ facts) as [v [Iv Bv]].
  assert (v = exponent 1 * (1 + d)) as Ev by (destruct Ir as [_ Vr], Iv as [_ Vv]; unfold exponent; rewrite <- Vr;
    symmetry; exact Vv). clear Ir.
  generalize (amplitude_range _ _ facts). intros HC.
  destruct (computed_exponent x v d Hx Ev ltac:(lra) Bv) as [B [m [Hm M]]].
  unfold judge. cbv zeta.
  set (T := ((if square t then float_of x * float_of x else float_of x) * rate t)%float).
  assert (Lx : Rabs (rnd (IZR x)) <= bpow radix2 63) by (rewrite Rabs_pos_eq; apply uniform_bound; lia).
  assert (Lsq : Rabs (rnd (IZR x) * rnd (IZR x)) <= bpow radix2 126).
  { rewrite Rabs_mult. change (bpow radix2 126) with (bpow radix2 (63 + 63)). rewrite bpow_plus.
    apply Rmult_le_compat; try apply Rabs_pos; assumption. }
  assert (IT : is T (computed x v)).
  { unfold T, computed. assert (IX : is (float_of x) (rnd (IZR x))) by (apply float_of_is; lia).
    assert (V : Rabs v <= bpow radix2 53) by (rewrite Rabs_pos_eq; [apply Bv|generalize (bpow_ge_0 radix2 (-300));
      lra]).
    assert (G : forall y, Rabs y <= bpow radix2 126 -> Rabs (y * v) <= bpow radix2 1020).
    { intros y H. rewrite Rabs_mult. apply Rle_trans with (bpow radix2 (126 + 53)); [|apply bpow_le; lia].
      rewrite bpow_plus.
      apply Rmult_le_compat; try apply Rabs_pos; assumption. }
    destruct (square t); apply mul_is; auto.
    - apply mul_is; auto. eapply Rle_trans; [exact Lsq|apply bpow_le; lia].
    - apply G, rnd_bound; [lia|exact Lsq].
    - apply G. eapply Rle_trans; [exact Lx|apply bpow_le; lia]. }
  generalize (exp2_minus_is fused (e + 63) T _ IT (proj1 B) ltac:(lia)).
  set (F := rnd (power fused (e + 63) (Rmin (computed x v) 1000))).
  intros IF.
  (* The left sides. *)
  assert (IW : is (float_of W) (IZR W)) by (apply exact_float; lia).
  assert (IU : is (float_of u) (rnd (IZR u))) by (apply float_of_is; lia).
  assert (IC : is (float_of (amplitude t)) (IZR (amplitude t))) by (apply exact_float; lia).
  assert (W32 : 1 <= IZR W <= bpow radix2 32) by (change (bpow radix2 32) with (IZR (2 ^ 32)); split; apply IZR_le;
    lia).
  assert (C32 : 1 <= IZR (amplitude t) <= bpow radix2 32) by (change (bpow radix2 32) with (IZR (2 ^ 32)); split;
    apply IZR_le; lia).
  generalize (uniform_bound u Hu). intros U63.
  assert (L95 : Rabs (rnd (IZR u) * IZR W) <= bpow radix2 95).
  { rewrite Rabs_pos_eq by nra. change (bpow radix2 95) with (bpow radix2 (63 + 32)). rewrite bpow_plus.
    apply Rmult_le_compat; lra. }
  assert (big : forall a b y, (a <= b)%Z -> Rabs y <= bpow radix2 a -> Rabs y <= bpow radix2 b).
  { intros a b y H1 H2. eapply Rle_trans; [exact H2|apply bpow_le, H1]. }
  assert (IL : is (float_of u * float_of W)%float (rnd (rnd (IZR u) * IZR W))) by (apply mul_is; auto;
    apply (big 95%Z); [lia|exact L95]).
  assert (LL : 0 <= rnd (rnd (IZR u) * IZR W) <= bpow radix2 95).
  { split; [apply rnd_nonnegative; nra|]. eapply Rle_trans; [apply Rle_abs|]. apply rnd_bound; [lia|exact L95]. }
  assert (IS : is (float_of u * float_of W + float_of W)%float (rnd (rnd (rnd (IZR u) * IZR W) + IZR W))).
  { apply add_is; auto. apply (big 96%Z); [lia|]. rewrite Rabs_pos_eq by lra.
    change (bpow radix2 96) with (bpow radix2 (1 + 95)). rewrite bpow_plus.
    assert (bpow radix2 32 <= bpow radix2 95) by (apply bpow_le; lia). simpl (bpow radix2 1). lra. }
  (* The right sides. *)
  generalize (window_value _ _ facts). intros Iw.
  generalize is_one below_one above_one. intros I1 D1 D2.
  assert (one : forall y, Rabs y <= 2 -> Rabs y <= bpow radix2 1020).
  { intros y H. apply (big 1%Z); [lia|exact H]. }
  assert (Im : is (1 - window t)%float (1 - eta2)).
  { rewrite <- (rnd_double _ D1). apply sub_is; auto. apply one, Rabs_le. lra. }
  assert (Ip : is (1 + window t)%float (1 + eta2)).
  { rewrite <- (rnd_double _ D2). apply add_is; auto. apply one, Rabs_le. lra. }
  assert (side : forall f y, is f y -> 0 <= y <= 2
    -> is (float_of (amplitude t) * f)%float (rnd (IZR (amplitude t) * y))
    /\ 0 <= rnd (IZR (amplitude t) * y) <= bpow radix2 33).
  { intros f y I Y. assert (Rabs (IZR (amplitude t) * y) <= bpow radix2 33).
    { rewrite Rabs_pos_eq by nra. change (bpow radix2 33) with (bpow radix2 (32 + 1)). rewrite bpow_plus.
      simpl (bpow radix2 1).
      apply Rmult_le_compat; lra. }
    split; [apply mul_is; auto; apply (big 33%Z); [lia|assumption]|]. split; [apply rnd_nonnegative; nra|].
    eapply Rle_trans; [apply Rle_abs|]. apply rnd_bound; [lia|assumption]. }
  destruct (side _ _ Im ltac:(lra)) as [Jm Bm]. destruct (side _ _ Ip ltac:(lra)) as [Jp Bp].
  (* The exponential. *)
  set (w := Rmin (computed x v) 1000) in *.
  assert (Bw : 0 <= w <= 1000) by (unfold w; split; [apply Rmin_glb; lra|apply Rmin_r]).
  assert (Dw : double w).
  { unfold w, Rmin. destruct (Rle_dec (computed x v) 1000); [apply double_rnd|apply (whole_double 1000); lia]. }
  generalize (exponential_error fused w (e + 63) Dw Bw). fold (power fused (e + 63) w).
  set (E' := exp ((IZR (e + 63) - w) * ln 2)). intros X.
  assert (E'p : 0 < E') by apply exp_pos.
  assert (HE' : bpow radix2 (-940) <= E' <= bpow radix2 67).
  { unfold E'. rewrite !bpow_exp. assert (63 <= IZR (e + 63) <= 67) by (split; apply IZR_le; lia).
    generalize ln2_positive; intros.
    split; apply Raux.exp_le; apply Rmult_le_compat_r; lra. }
  set (p := power fused (e + 63) w) in *.
  assert (Xp : exists a, Rabs a <= 67 / 64 / 70368744177664 /\ p = E' * (1 + a)).
  { exists (p / E' - 1). split; [exact X|]. field. lra. }
  destruct Xp as [a [Ha Hp]]. apply Rabs_le_inv in Ha.
  destruct (rounding p) as [b [Hb Fb]].
  { right. rewrite Hp, Rabs_pos_eq by (apply Rmult_le_pos; lra).
    apply Rle_trans with (bpow radix2 (-940) * bpow radix2 (-1)).
    - rewrite <- bpow_plus. apply bpow_le. lia.
    - simpl (bpow radix2 (-1)). apply Rmult_le_compat; try lra. apply bpow_ge_0. }
  fold F in Fb. apply Rabs_le_inv in Hb.
  assert (FB : 0 <= F <= bpow radix2 68).
  { rewrite Fb, Hp. change (bpow radix2 68) with (bpow radix2 (67 + 1)). rewrite bpow_plus. simpl (bpow radix2 1).
    assert (1/2 <= (1 + a) * (1 + b) <= 2) by (clear - Ha Hb; split; interval). rewrite Rmult_assoc.
    split; [apply Rmult_le_pos; lra|].
    apply Rmult_le_compat; lra. }
  assert (IR : forall f y, is f y -> 0 <= y <= bpow radix2 33
    -> is (exp2_minus fused (e + 63) T * f)%float (rnd (F * y))).
  { intros f y I Y. apply mul_is; auto. apply (big 101%Z); [lia|]. rewrite Rabs_pos_eq by (apply Rmult_le_pos; lra).
    change (bpow radix2 101) with (bpow radix2 (68 + 33)). rewrite bpow_plus. apply Rmult_le_compat; lra. }
  generalize (IR _ _ Jm Bm) (IR _ _ Jp Bp). intros Km Kp.
  rewrite (less_is _ _ _ _ IS Km), (less_is _ _ _ _ Kp IL).
  set (E := exp ((IZR (e + 63) - exponent x) * ln 2)).
  assert (RS : right_side 63 e x = IZR (amplitude t) * E).
  { unfold right_side, E. rewrite density_is_power, bpow_exp, <- exp_plus. f_equal. f_equal. ring. }
  rewrite RS. assert (Ep : 0 < E) by apply exp_pos.
  generalize (exponent_nonnegative x ltac:(lia)). intros Tp. apply Rabs_le_inv in Hm.
  destruct (Rle_lt_dec (computed x v) 1000) as [Small|Large].
  - assert (Ew : w = exponent x * (1 + m)) by (unfold w; rewrite Rmin_left by exact Small; exact M).
    assert (T1001 : exponent x <= 1001) by (clear - M Small Hm Tp; nra).
    assert (HE : bpow radix2 (-960) <= E).
    { unfold E. rewrite bpow_exp. apply Raux.exp_le. apply Rmult_le_compat_r; [apply Rlt_le, ln2_positive|].
      assert (63 <= IZR (e + 63)) by (apply IZR_le; lia). lra. }
    assert (HF : Rabs (F / E - 1) <= 1 / 1099511627776).
    { assert (Q : E' = E * exp ((exponent x - w) * ln 2)) by (unfold E, E'; rewrite <- exp_plus; f_equal; ring).
      assert (N : Rabs (exp ((exponent x - w) * ln 2) - 1) <= 9 / 10 / 1099511627776).
      { apply moved. rewrite Ew. replace (exponent x - exponent x * (1 + m)) with (- (exponent x * m)) by ring.
        rewrite Rabs_Ropp, Rabs_mult.
        apply Rmult_le_compat; try apply Rabs_pos; [rewrite Rabs_pos_eq; lra|apply Rabs_le; lra]. }
      replace (F / E - 1) with ((1 + (exp ((exponent x - w) * ln 2) - 1)) * (1 + a) * (1 + b) - 1) by (rewrite Fb, Hp,
        Q; field; lra).
      set (n := exp ((exponent x - w) * ln 2) - 1) in *. apply Rabs_le_inv in N. apply Rabs_le.
      split; interval with (i_prec 100). }
    split.
    + apply (accept_is_right u W (amplitude t) E F); auto; lia.
    + apply (reject_is_right u W (amplitude t) E F); auto; lia.
  - (* Beyond 1000: R is below 1, and nothing can be accepted. *)
    assert (w1000 : w = 1000) by (unfold w; apply Rmin_right; lra).
    assert (T999 : 999 <= exponent x) by (clear - M Large Hm Tp; nra).
    assert (ES : E <= bpow radix2 (-900)).
    { unfold E. rewrite bpow_exp. apply Raux.exp_le. apply Rmult_le_compat_r; [apply Rlt_le, ln2_positive|].
      assert (IZR (e + 63) <= 67) by (apply IZR_le; lia). lra. }
    assert (RW : IZR (amplitude t) * E <= 1).
    { apply Rle_trans with (bpow radix2 32 * bpow radix2 (-900)); [apply Rmult_le_compat; lra|].
      rewrite <- bpow_plus. apply (bpow_le radix2 _ 0). lia. }
    split.
    + intros H. exfalso.
      assert (L1 : 1 <= rnd (rnd (rnd (IZR u) * IZR W) + IZR W)).
      { rewrite <- (rnd_double 1) by (apply (whole_double 1); lia). apply rnd_monotone. lra. }
      assert (F1 : F <= bpow radix2 (-900)).
      { rewrite Fb, Hp. assert (E' <= bpow radix2 (-932)).
        { unfold E'. rewrite w1000, bpow_exp. apply Raux.exp_le. apply Rmult_le_compat_r; [apply Rlt_le, ln2_positive|].
          assert (IZR (e + 63) <= 67) by (apply IZR_le; lia). lra. }
        change (bpow radix2 (-900)) with (bpow radix2 (-932 + 32)). rewrite bpow_plus.
        assert (4 <= bpow radix2 32) by (apply (bpow_le radix2 2); lia).
        assert (0 <= (1 + a) * (1 + b) <= 2) by (clear - Ha Hb; split; interval).
        rewrite Rmult_assoc. apply Rmult_le_compat; lra. }
      assert (R1 : rnd (F * rnd (IZR (amplitude t) * (1 - eta2))) <= bpow radix2 (-1)).
      { eapply Rle_trans; [apply Rle_abs|]. apply rnd_bound; [lia|]. rewrite Rabs_pos_eq by (apply Rmult_le_pos; lra).
        apply Rle_trans with (bpow radix2 (-900) * bpow radix2 33); [apply Rmult_le_compat; lra|].
        rewrite <- bpow_plus. apply bpow_le. lia. }
      simpl (bpow radix2 (-1)) in R1. lra.
    + intros H. assert (0 <= rnd (F * rnd (IZR (amplitude t) * (1 + eta2)))) by (apply rnd_nonnegative, Rmult_le_pos;
        lra).
      assert (u <> 0%Z). { intros ->.
      rewrite (rnd_double 0), Rmult_0_l, (rnd_double 0) in H by apply generic_format_0. lra. }
      assert (1 <= IZR u) by (apply IZR_le; lia). apply Rle_trans with (1 * 1); [lra|apply Rmult_le_compat; lra].
Qed.
End Judged.
