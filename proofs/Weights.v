(* The weights by which candidates are proposed: what weigh of candidates.rs computes in doubles is a whole number from
   C w to C, where w is the weight that the law asks for and C = 2^51. *)
From Coq Require Import Reals ZArith Lia Lra Psatz Floats SpecFloat.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Core BinarySingleNaN.
From Interval Require Import Tactic.
From Dpnoise Require Import Rounding Exponential Model Machine Kernel Sound Trial.
Open Scope R_scope.
Notation float := Coq.Floats.PrimFloat.float.

(* C, the depth of a candidate that cannot be chosen, and what raises a weight above the exact one. *)
Definition largest : Z := 2 ^ 51.
Definition retired : Z := 2 ^ 62.
Definition margin : float := 0x1.0000000001p0%float.

(* The model, operation by operation. *)
Definition weight (rate : float) (depth : Z) : Z :=
  if (depth <? retired)%Z then
    let y := (exp2_minus false 51 (float_of depth * rate) * margin)%float in
    Z.min largest (integer_of (y + rounder) - integer_of rounder + 1)
  else 0%Z.

Lemma margin_is : is margin (1 + 1 / 1099511627776).
Proof. eapply constant_is; [vm_compute; reflexivity|unfold F2R; simpl; lra]. Qed.

(* A number that is rounded to the next whole one, half to even, plus 1, is above it, also where that rounding is
   coarser. *)
Lemma raised y v : is y v -> 0 <= v <= bpow radix2 60 ->
  (1 <= integer_of (y + rounder) - integer_of rounder + 1)%Z
  /\ (v <= IZR (integer_of (y + rounder) - integer_of rounder + 1)
      \/ (largest <= integer_of (y + rounder) - integer_of rounder + 1)%Z).
Proof.
  intros I B. assert (R : is rounder (IZR Exponential.rounder)) by (eapply constant_is; [vm_compute;
    reflexivity|unfold F2R; simpl; lra]).
  assert (S : is (y + rounder)%float (rnd (v + IZR Exponential.rounder))).
  { apply add_is; auto. apply Rle_trans with (bpow radix2 61); [|apply bpow_le; lia].
    change (bpow radix2 60) with 1152921504606846976 in B. change (bpow radix2 61) with 2305843009213693952.
    apply Rabs_le. lra. }
  rewrite (integer_of_is _ _ R) by lia.
  destruct (Rlt_or_le v 2251799813685248) as [Lt|Ge].
  - rewrite rounded_sum in S by lra. assert (W : (0 <= whole v)%Z).
    { generalize (whole_near v). intros N. apply Rabs_le_inv in N. assert (G : -1 < IZR (whole v)) by lra.
      apply (lt_IZR (-1)) in G. lia. }
    rewrite (integer_of_is _ _ S) by lia. split; [lia|]. left. rewrite plus_IZR, minus_IZR, plus_IZR.
    generalize (whole_near v). intros N. apply Rabs_le_inv in N. lra.
  - assert (G : IZR (2 ^ 53) <= rnd (v + IZR Exponential.rounder)).
    { rewrite <- (rnd_double (IZR (2 ^ 53))) by (apply whole_double; lia). apply rnd_monotone. simpl. lra. }
    assert (F : (2 ^ 53 <= integer_of (y + rounder))%Z).
    { rewrite (integer_of_floor _ _ S); [apply Zfloor_lub, G|]. eapply Rle_trans; [|exact G]. apply IZR_le. lia. }
    unfold largest. split; [lia|]. right. lia.
Qed.

(* For a scale in steps, numerator / denominator, and a rate that is within six units of rounding of log2(e) over it. *)
Theorem weights_cover l rate depth : gaussian l = false -> (1 <= numerator l)%Z -> (1 <= denominator l)%Z ->
  sound_rate l rate = true -> (0 <= depth <= 2 ^ 51)%Z ->
  IZR largest * density l depth <= IZR (weight rate depth) /\ (1 <= weight rate depth <= largest)%Z.
Proof.
  intros G Np Dp S D. destruct (sound_rate_facts l rate Np Dp S) as [[d [Ir Hd]] [v [Iv Bv]]].
  set (x := IZR depth * (IZR (denominator l) / IZR (numerator l))).
  assert (Nz : 0 < IZR (numerator l)) by (apply IZR_lt; lia).
  assert (Dz : 0 < IZR (denominator l)) by (apply IZR_lt; lia).
  generalize ln2_positive. intros L2.
  assert (D0 : 0 <= IZR depth <= 2251799813685248) by (split; apply IZR_le; lia).
  assert (X0 : 0 <= x) by (apply Rmult_le_pos; [lra|]; apply Rlt_le, Rdiv_lt_0_compat; assumption).
  assert (Den : density l depth = exp (- x)).
  { unfold density, dividend, divisor, x. rewrite G, mult_IZR. f_equal. field. lra. }
  assert (Ev : IZR depth * v = x / ln 2 * (1 + d)).
  { destruct Ir as [_ Vr], Iv as [_ <-]. rewrite Vr. unfold dividend, divisor, x. rewrite G, Z.mul_1_l. field. lra. }
  assert (Dd : is (float_of depth) (IZR depth)).
  { rewrite <- (rnd_double (IZR depth)) by (apply whole_double; lia). apply float_of_is. lia. }
  assert (P : 0 <= IZR depth * v <= bpow radix2 104).
  { assert (0 <= v) by (generalize (bpow_ge_0 radix2 (-300)); lra).
    split; [apply Rmult_le_pos; lra|]. change (bpow radix2 104) with (bpow radix2 (51 + 53)). rewrite bpow_plus.
    apply Rmult_le_compat; try lra. change (bpow radix2 51) with 2251799813685248. lra. }
  set (T := rnd (IZR depth * v)).
  assert (IT : is (float_of depth * rate)%float T).
  { apply mul_is; auto. rewrite Rabs_pos_eq by apply P. eapply Rle_trans; [apply P|apply bpow_le; lia]. }
  assert (T0 : 0 <= T) by (apply rnd_nonnegative, P).
  unfold weight. rewrite (proj2 (Z.ltb_lt depth retired)) by (unfold retired; lia). cbv zeta.
  generalize (exp2_minus_is false 51 _ _ IT T0 ltac:(lia)).
  set (w := Rmin T 1000). set (F := rnd (power false 51 w)). intros IF.
  assert (Bw : 0 <= w <= 1000) by (unfold w; split; [apply Rmin_glb; lra|apply Rmin_r]).
  assert (Dw : double w).
  { unfold w, Rmin. destruct (Rle_dec T 1000); [apply double_rnd|apply (whole_double 1000); lia]. }
  generalize (exponential_error false w 51 Dw Bw). fold (power false 51 w).
  set (E := exp ((IZR 51 - w) * ln 2)). intros X.
  assert (HE : bpow radix2 (-949) <= E <= bpow radix2 51).
  { unfold E. rewrite !bpow_exp. split; apply Raux.exp_le, Rmult_le_compat_r; lra. }
  generalize (bpow_gt_0 radix2 (-949)). intros Small.
  set (p := power false 51 w) in *.
  assert (Xp : exists a, Rabs a <= 67 / 64 / 70368744177664 /\ p = E * (1 + a)).
  { exists (p / E - 1). split; [exact X|]. field. lra. }
  destruct Xp as [a [Ha Hp]]. apply Rabs_le_inv in Ha.
  assert (big : forall y, bpow radix2 (-949) * (1/2) <= y -> y = 0 \/ bpow radix2 (-1000) <= Rabs y).
  { intros y H. right. rewrite Rabs_pos_eq by lra. eapply Rle_trans; [|exact H].
    change (1/2) with (1 / 2). replace (1/2) with (bpow radix2 (-1)) by (simpl; lra). rewrite <- bpow_plus.
    apply bpow_le. lia. }
  destruct (rounding p) as [b [Hb Fb]]; [apply big; rewrite Hp; nra|]. fold F in Fb. apply Rabs_le_inv in Hb.
  destruct (rounding (F * (1 + 1 / 1099511627776))) as [c [Hc Fc]].
  { apply big. rewrite Fb, Hp. assert (1/2 <= (1 + a) * (1 + b) * (1 + 1 / 1099511627776)) by interval. nra. }
  apply Rabs_le_inv in Hc. set (Y := rnd (F * (1 + 1 / 1099511627776))) in *.
  assert (EY : Y = E * ((1 + a) * (1 + b) * (1 + 1 / 1099511627776) * (1 + c))) by (rewrite Fc, Fb, Hp; ring).
  assert (BY : 0 <= Y <= bpow radix2 60).
  { rewrite EY. assert (0 <= (1 + a) * (1 + b) * (1 + 1 / 1099511627776) * (1 + c) <= 2) by (split; interval).
    change (bpow radix2 60) with (bpow radix2 (59 + 1)). rewrite bpow_plus.
    assert (bpow radix2 51 <= bpow radix2 59) by (apply bpow_le; lia). change (bpow radix2 1) with 2.
    split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]. }
  assert (FM : 0 <= F * (1 + 1 / 1099511627776) <= bpow radix2 61).
  { assert (0 <= F) by (rewrite Fb, Hp; apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
    set (G' := F * (1 + 1 / 1099511627776)) in *. assert (0 <= G') by (apply Rmult_le_pos; lra).
    assert (G' * (1/2) <= G' * (1 + c)) by (apply Rmult_le_compat_l; lra).
    change (bpow radix2 61) with (bpow radix2 (60 + 1)). rewrite bpow_plus. change (bpow radix2 1) with 2. lra. }
  assert (IY : is (exp2_minus false 51 (float_of depth * rate) * margin)%float Y).
  { apply mul_is; [exact IF|exact margin_is|]. rewrite Rabs_pos_eq by apply FM.
    eapply Rle_trans; [apply FM|apply bpow_le; lia]. }
  destruct (raised _ _ IY BY) as [One Above]. split; [|unfold largest in *; lia].
  rewrite Den. set (A := (integer_of _ - integer_of rounder + 1)%Z) in *.
  assert (C1 : exp (- x) <= 1) by (rewrite <- exp_0; apply Raux.exp_le; lra).
  assert (Cp : 0 < IZR largest) by (apply IZR_lt; reflexivity).
  (* Beyond 1000, C w is below 1. *)
  destruct (rounding (IZR depth * v)) as [e [He Te]].
  { destruct (Z.eq_dec depth 0) as [->|N]; [left; ring|right]. assert (1 <= IZR depth) by (apply IZR_le; lia).
    generalize (bpow_gt_0 radix2 (-300)). intros. rewrite Rabs_pos_eq by apply P.
    apply Rle_trans with (bpow radix2 (-300)); [apply bpow_le; lia|]. apply Rle_trans with (1 * v); [lra|].
    apply Rmult_le_compat_r; lra. }
  fold T in Te. rewrite Ev in Te. apply Rabs_le_inv in He, Hd.
  set (m := (1 + d) * (1 + e) - 1). assert (Hm : Rabs m <= 8 * u53).
  { unfold m. apply Rabs_le. split; interval with (i_prec 120). }
  assert (Tm : T * ln 2 = x * (1 + m)) by (rewrite Te; unfold m; field; lra). apply Rabs_le_inv in Hm.
  assert (Full : IZR largest * exp (- x) <= IZR largest).
  { rewrite <- (Rmult_1_r (IZR largest)) at 2. apply Rmult_le_compat_l; lra. }
  assert (Min : forall k, IZR largest * exp (- x) <= IZR k -> IZR largest * exp (- x) <= IZR (Z.min largest k)).
  { intros k H. destruct (Z.min_spec largest k) as [[_ ->]|[_ ->]]; [exact Full|exact H]. }
  apply Min. destruct Above as [Above|Above]; [|apply IZR_le in Above; lra].
  destruct (Rle_lt_dec T 1000) as [Near|Far].
  - eapply Rle_trans; [|exact Above]. assert (Ew : w = T) by (apply Rmin_left, Near). rewrite EY. unfold E. rewrite Ew.
    assert (X2 : x / ln 2 <= 1001).
    { apply Rle_div_l; [exact L2|]. assert (T * ln 2 <= 1000 * ln 2) by (apply Rmult_le_compat_r; lra).
      assert (x * (1 - 8 * u53) <= x * (1 + m)) by (apply Rmult_le_compat_l; lra). lra. }
    generalize (moved (x / ln 2 * m)). intros M.
    assert (M' : Rabs (exp (x / ln 2 * m * ln 2) - 1) <= 9 / 10 / 1099511627776).
    { apply M. rewrite Rabs_mult. assert (0 <= x / ln 2) by (apply Rdiv_le_0_compat; assumption).
      apply Rmult_le_compat; try apply Rabs_pos; [rewrite Rabs_pos_eq; lra|apply Rabs_le; lra]. }
    clear M. replace (x / ln 2 * m * ln 2) with (x * m) in M' by (field; lra).
    replace ((51 - T) * ln 2) with (51 * ln 2 + - x + - (x * m)) by (rewrite Rmult_minus_distr_r, Tm; ring).
    rewrite !exp_plus, (exp_Ropp (x * m)). replace (exp (51 * ln 2)) with (IZR largest).
    2: { change (IZR largest) with (bpow radix2 51). rewrite bpow_exp. reflexivity. }
    set (n := exp (x * m) - 1) in *. replace (exp (x * m)) with (1 + n) by (unfold n; ring). apply Rabs_le_inv in M'.
    rewrite Rmult_assoc. rewrite <- (Rmult_1_r (IZR largest * exp (- x))) at 1.
    apply Rmult_le_compat_l; [apply Rmult_le_pos; [lra|apply Rlt_le, exp_pos]|].
    interval with (i_prec 100).
  - apply Rle_trans with 1; [|apply (IZR_le 1), One].
    assert (X2 : 690 <= x).
    { assert (H : 1000 * ln 2 <= T * ln 2) by (apply Rmult_le_compat_r; lra). rewrite Tm in H.
      assert (691 <= 1000 * ln 2) by interval. assert (x * (1 + m) <= x * (1 + 8 * u53)) by (apply Rmult_le_compat_l;
        lra). lra. }
    apply Rle_trans with (IZR largest * exp (-690)); [apply Rmult_le_compat_l; [lra|]; apply Raux.exp_le; lra|].
    change (IZR largest) with 2251799813685248. interval.
Qed.

(* A candidate that cannot be chosen has no weight. *)
Theorem retired_have_no_weight rate : weight rate retired = 0%Z.
Proof. reflexivity. Qed.
