(* Whether n/d <= e^x, as log.rs decides it in fixed point: the model, and that its answers are right. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Core Binary Bits.
From Dpnoise Require Import Decide Integers Fixed.
Import ListNotations.
Open Scope Z_scope.

(* m 2^e in fixed point, where it is a whole number of ulps. *)
Definition in_ulps (limbs m e : Z) : option Z :=
  let shift := 64 * limbs + e in
  let ulps := Z.shiftl m shift in
  if Z.shiftl ulps (- shift) =? m then Some ulps else None.

(* z / 2^128 in fixed point. *)
Definition over_2_128 (limbs z : Z) : Z := z * 2 ^ (64 * (limbs - 2)).

(* How many ulps the left side is allowed to be wrong. *)
Definition error : Z := 2 ^ 10 + 16 + 3.

(* n e^-x is compared with d, both over 2^128; None where the precision does not decide. *)
Definition compared (c : constants) (n d m e : Z) : option bool :=
  match in_ulps (limbs c) m e with
  | None => None
  | Some x =>
      let '(k, v) := exp2_neg c (times (limbs c) x (log2_e c)) in
      let left := times (limbs c) v (over_2_128 (limbs c) n) / 2 ^ k in
      let right := over_2_128 (limbs c) d in
      if left + error <=? right then Some true
      else if right <? Z.max 0 (left - error) then Some false else None
  end.

(* The first of some precisions that decides. *)
Fixpoint first_decision (precisions : list constants) (n d m e : Z) : option bool :=
  match precisions with
  | [] => None
  | c :: later => match compared c n d m e with None => first_decision later n d m e | answer => answer end
  end.

(* The answer for a double from 0 to 700; the code refuses others, and fractions with a part that is not positive. *)
Definition ln_at_most (precisions : list constants) (n d : Z) (x : binary64) : option bool :=
  if (0 <? n) && (n <? 2 ^ 128) && (0 <? d) then
    match x with
    | B754_zero _ => Some (n <=? d)
    | B754_finite false m e _ =>
        if (e <=? 0) && (Zpos m <=? 700 * 2 ^ (- e)) then
          if n <=? d then Some true else first_decision precisions n d (Zpos m) e
        else None
    | _ => None
    end
  else None.

Open Scope R_scope.

Lemma in_ulps_is limbs m e x : in_ulps limbs m e = Some x -> (0 <= limbs)%Z -> (0 <= m)%Z ->
  IZR x = IZR m * bpow radix2 e * IZR (unit limbs) /\ (0 <= x)%Z.
Proof.
  intros H L M. unfold in_ulps in H. remember (64 * limbs + e)%Z as s eqn:Es.
  destruct (Z.eqb_spec (Z.shiftl (Z.shiftl m s) (- s)) m) as [E|E]; [|discriminate]. injection H as <-.
  split; [|apply Z.shiftl_nonneg, M].
  rewrite Rmult_assoc. replace (bpow radix2 e * IZR (unit limbs)) with (bpow radix2 s).
  2: { unfold unit. change 2%Z with (radix_val radix2). rewrite IZR_Zpower, <- bpow_plus by lia. f_equal. lia. }
  destruct (Z.leb_spec 0 s).
  - rewrite Z.shiftl_mul_pow2, mult_IZR by lia. f_equal. apply (IZR_Zpower radix2). lia.
  - rewrite <- E at 2. rewrite (Z.shiftl_mul_pow2 _ (- s)), mult_IZR by lia.
    change 2%Z with (radix_val radix2). rewrite IZR_Zpower, Rmult_assoc, <- bpow_plus by lia.
    rewrite Z.add_opp_diag_l. simpl. ring.
Qed.

Section Precision.
Variable c : constants.
Hypothesis C : sound_constants c.
Hypothesis Two : (2 <= limbs c)%Z.
Let B := IZR (unit (limbs c)).

(* An answer is right: the error of the left side is at most 14 ulps and one for each unit of x, which is below 2^10. *)
Theorem comparisons_are_right n d m e answer : (0 < n < 2 ^ 128)%Z -> (0 < d)%Z -> (0 < m)%Z ->
  let x := IZR m * bpow radix2 e in x <= 700 ->
  compared c n d m e = Some answer -> if answer then IZR n <= IZR d * exp x else IZR d * exp x < IZR n.
Proof.
  intros Hn Hd M x X. unfold compared. destruct (in_ulps (limbs c) m e) as [ulps|] eqn:E; [|discriminate].
  destruct (in_ulps_is _ _ _ _ E) as [Is U]; [lia|lia|]. fold x B in Is.
  generalize (one_positive c C) log_2 (log2_e_rounded c C) (times_down c C ulps (log2_e c)). fold B.
  set (t := times (limbs c) ulps (log2_e c)). intros B2 L2 Le Down.
  assert (Le0 : (0 <= log2_e c)%Z).
  { apply le_IZR. assert (1 < / ln 2) by (rewrite <- Rinv_1; apply Rinv_lt_contravar; lra). nra. }
  assert (T0 : (0 <= t)%Z) by (apply times_positive; assumption).
  generalize (exp2_neg_is_near c C t T0). destruct (exp2_neg c t) as [k v]. fold B. intros [K [V Near]].
  (* x / ln 2 in ulps is at most x + 1 more than t. *)
  assert (X0 : 0 <= x).
  { unfold x. apply Rmult_le_pos; [apply IZR_le; lia|apply bpow_ge_0]. }
  set (more := x / ln 2 * B - IZR t). assert (More : 0 <= more <= x + 1).
  { unfold more. assert (0 <= x * (/ ln 2 * B - IZR (log2_e c)) <= x) by nra.
    replace (IZR ulps * IZR (log2_e c) / B) with (x * IZR (log2_e c)) in Down by (rewrite Is; field; lra).
    unfold Rdiv. lra. }
  set (near := exp2 (IZR t / B)) in *.
  assert (Split : exp (- x) = near * exp (- (more / B * ln 2))).
  { unfold near, exp2. rewrite <- exp_plus. f_equal. unfold more. field. lra. }
  assert (Np : 0 < near <= 1).
  { unfold near, exp2. split; [apply exp_pos|]. rewrite <- exp_0. apply Raux.exp_le.
    assert (0 <= IZR t / B) by (apply Rdiv_le_0_compat; [apply IZR_le, T0|lra]). nra. }
  assert (Drop : near * B - more <= exp (- x) * B <= near * B).
  { rewrite Split. set (y := more / B * ln 2).
    assert (Y : 0 <= y) by (unfold y; apply Rmult_le_pos; [apply Rdiv_le_0_compat|]; lra).
    assert (YB : y * B <= more) by (replace (y * B) with (more * ln 2) by (unfold y; field; lra); nra).
    assert (1 - y <= exp (- y)) by (generalize (exp_ineq1_le (- y)); lra).
    assert (exp (- y) <= 1) by (rewrite <- exp_0; apply Raux.exp_le; lra). split.
    - apply Rle_trans with (near * (1 - y) * B); [nra|]. apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_l; lra.
    - apply Rmult_le_compat_r; [lra|]. nra. }
  (* The left side. *)
  set (nu := IZR n / 2 ^ 128). assert (Nu : 0 < nu < 1).
  { assert (IZR n < 2 ^ 128) by (rewrite (pow_IZR 2 128); apply IZR_lt, Hn). assert (0 < IZR n) by (apply IZR_lt; lia).
    unfold nu. split; [apply Rdiv_lt_0_compat; lra|apply Rlt_div_l; lra]. }
  set (over := over_2_128 (limbs c)). assert (Over : forall z, IZR (over z) = IZR z / 2 ^ 128 * B).
  { intros z. unfold over, over_2_128, B, unit. rewrite mult_IZR.
    replace (64 * limbs c)%Z with (128 + 64 * (limbs c - 2))%Z by ring.
    rewrite (Z.pow_add_r 2 128) by lia. rewrite mult_IZR, (pow_IZR 2 128).
    change (IZR (2 ^ 128)) with (IZR (2 ^ Z.of_nat 128)).
    field. apply not_0_IZR. discriminate. }
  assert (K1 : (0 < 2 ^ k)%Z) by (apply Z.pow_pos_nonneg; lia).
  set (P := IZR (2 ^ k)) in *. assert (P1 : 1 <= P) by (apply IZR_le; lia).
  replace (2 ^ Z.to_nat k)%R with P in Near by (unfold P; rewrite pow_IZR, Z2Nat.id by lia; reflexivity).
  generalize (times_down c C v (over n)). fold B. rewrite Over. fold nu.
  replace (IZR v * (nu * B) / B) with (IZR v * nu) by (field; lra).
  set (product := times (limbs c) v (over n)). intros Dp. generalize (down product (2 ^ k) K1). fold P.
  set (left := (product / 2 ^ k)%Z). intros Dl.
  assert (Left : 0 <= near * nu * B - IZR left <= 14).
  { assert (Q : 0 <= near * nu * P * B - IZR product <= 13) .
    { replace (_ - _) with (nu * (near * P * B - IZR v) + (IZR v * nu - IZR product)) by ring.
      assert (0 <= nu * (near * P * B - IZR v) <= 1 * 12); [|lra].
      split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra. }
    assert (0 <= near * nu * B - IZR product / P <= 13); [|lra].
    replace (near * nu * B - IZR product / P) with ((near * nu * P * B - IZR product) / P) by (field; lra).
    split; [apply Rdiv_le_0_compat|apply Rle_div_l]; lra. }
  assert (Far : IZR left - (x + 1) <= exp (- x) * nu * B <= IZR left + 14).
  { replace (exp (- x) * nu * B) with (nu * (exp (- x) * B)) by ring.
    assert (0 <= nu * more <= 1 * (x + 1)) by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
    assert (nu * (near * B - more) <= nu * (exp (- x) * B) <= nu * (near * B))
      by (split; apply Rmult_le_compat_l; lra). lra. }
  assert (Goal : forall z, z = exp (- x) * nu * B -> (z <= IZR d / 2 ^ 128 * B <-> IZR n <= IZR d * exp x)
    /\ (IZR d / 2 ^ 128 * B < z <-> IZR d * exp x < IZR n)).
  { intros z ->. replace (IZR d / 2 ^ 128 * B) with (IZR d * exp x * (exp (- x) * (B / 2 ^ 128))).
    2: { rewrite <- Rmult_assoc, (Rmult_assoc (IZR d)), <- exp_plus, Rplus_opp_r, exp_0. field. }
    replace (exp (- x) * nu * B) with (IZR n * (exp (- x) * (B / 2 ^ 128))) by (unfold nu; field).
    assert (0 < exp (- x) * (B / 2 ^ 128)) by (apply Rmult_lt_0_compat; [apply exp_pos|lra]).
    split; (split; [apply Rmult_le_reg_r || apply Rmult_lt_reg_r|apply Rmult_le_compat_r || apply Rmult_lt_compat_r]);
      lra. }
  destruct (Goal _ eq_refl) as [Most Less]. cbv zeta.
  assert (Enough : 701 <= IZR error) by (apply IZR_le; discriminate).
  destruct (Z.leb_spec (left + error) (over d)) as [G|G].
  - intros A. injection A as <-. apply Most. apply IZR_le in G. rewrite plus_IZR, Over in G. lra.
  - destruct (Z.ltb_spec (over d) (Z.max 0 (left - error))) as [G'|G']; intros A; [injection A as <-|discriminate].
    apply Less. assert (0 <= over d)%Z by (apply Z.mul_nonneg_nonneg; [lia|apply Z.pow_nonneg; lia]).
    rewrite Z.max_r in G' by lia. apply IZR_lt in G'. rewrite minus_IZR, Over in G'. lra.
Qed.
End Precision.

Definition sound_precisions (precisions : list constants) : Prop :=
  List.Forall (fun c => sound_constants c /\ (2 <= limbs c)%Z) precisions.
Definition double : binary64 -> R := B2R 53 1024.
Definition is_double : R -> Prop := generic_format radix2 (FLT_exp (-1074) 53).

Lemma logarithm n d r : (0 < n)%Z -> (0 < d)%Z -> (IZR n <= IZR d * exp r -> ln (IZR n / IZR d) <= r)
  /\ (IZR d * exp r < IZR n -> r < ln (IZR n / IZR d)).
Proof.
  intros N D. apply IZR_lt in N, D. assert (Q : 0 < IZR n / IZR d) by (apply Rdiv_lt_0_compat; assumption).
  split; intros H.
  - rewrite <- (ln_exp r). apply ln_le; [exact Q|]. apply Rle_div_l; lra.
  - rewrite <- (ln_exp r) at 1. apply ln_increasing; [apply exp_pos|]. apply Rlt_div_r; lra.
Qed.

(* So are answers about doubles, at any precisions. *)
Theorem ln_at_most_is_right precisions n d x answer :
  sound_precisions precisions -> ln_at_most precisions n d x = Some answer ->
  if answer then ln (IZR n / IZR d) <= double x else double x < ln (IZR n / IZR d).
Proof.
  intros Sound. unfold ln_at_most, double.
  destruct ((0 <? n) && (n <? 2 ^ 128) && (0 <? d))%Z eqn:Range; [|discriminate].
  rewrite !andb_true_iff, !Z.ltb_lt in Range. destruct Range as [[N N'] D].
  generalize (fun r => logarithm n d r N D). intros Ln.
  destruct x as [s| | |[|] m e H]; try discriminate.
  - intros A. injection A as <-. simpl. generalize (Ln 0). rewrite exp_0, Rmult_1_r. intros [L L'].
    destruct (Z.leb_spec n d); [apply L, IZR_le|apply L', IZR_lt]; assumption.
  - destruct (Z.leb_spec e 0) as [E|E]; [|discriminate].
    destruct (Z.leb_spec (Zpos m) (700 * 2 ^ (- e))) as [M|M]; [|discriminate]. cbn [andb].
    change (B2R 53 1024 (B754_finite 53 1024 false m e H)) with (IZR (Zpos m) * bpow radix2 e). set (r := _ * _).
    assert (R : 0 < r <= 700).
    { apply IZR_le in M. rewrite mult_IZR in M. change 2%Z with (radix_val radix2) in M.
      rewrite IZR_Zpower in M by lia.
      assert (P := bpow_gt_0 radix2 e). assert (0 < IZR (Zpos m)) by (apply IZR_lt; lia).
      unfold r. split; [apply Rmult_lt_0_compat; assumption|].
      apply Rmult_le_compat_r with (r := bpow radix2 e) in M; [|lra].
      rewrite Rmult_assoc, <- bpow_plus, Z.add_opp_diag_l in M. simpl (bpow radix2 0) in M. lra. }
    destruct (Z.leb_spec n d) as [L|L].
    + intros A. injection A as <-. apply Ln. apply IZR_le in L. assert (0 < IZR d) by (apply IZR_lt, D).
      assert (1 <= exp r); [|nra].
           rewrite <- exp_0. apply Raux.exp_le. lra.
    + clear L. induction Sound as [|c precisions [Sc C2] _ IH]; [discriminate|]. cbn [first_decision].
      destruct (compared c n d (Zpos m) e) as [a|] eqn:C; [|exact IH]. intros A. injection A as <-.
      generalize (comparisons_are_right c Sc C2 n d (Zpos m) e a (conj N N') D (Pos2Z.is_pos m) (proj2 R) C).
      fold r. destruct a; apply Ln.
Qed.

(* Whether intervals show that a double is at least ln(n/d), and that the next smaller one is below it. *)
Definition power (x : binary64) : term :=
  match x with
  | B754_finite s m e _ => Exp (Div (Whole (cond_Zopp s (Zpos m))) (Whole (2 ^ (- e))))
  | _ => Exp (Whole 0)
  end.
Definition small (x : binary64) : bool := match x with B754_finite _ _ e _ => (e <=? 0)%Z | _ => true end.
Definition enough (n d : Z) (x : binary64) : bool := small x && at_most (Whole n) (Mul (Whole d) (power x)).
Definition too_little (n d : Z) (x : binary64) : bool :=
  small x && at_most (Add (Mul (Whole d) (power x)) (Div (Whole 1) (Whole (2 ^ 100)))) (Whole n).
Definition previous : binary64 -> binary64 := Bpred 53 1024 eq_refl eq_refl.
Definition is_least (n d : Z) (x : binary64) : bool :=
  is_finite_strict 53 1024 x && negb (Bsign 53 1024 x) && enough n d x && too_little n d (previous x).

Lemma power_is x : small x = true -> denote (power x) = exp (double x).
Proof.
  destruct x as [| | |s m e H]; try reflexivity. unfold small. rewrite Z.leb_le. intros E. cbn [power denote]. f_equal.
  unfold double, B2R, F2R. cbn [Fnum Fexp]. unfold Rdiv. f_equal.
  change (2 ^ - e)%Z with (radix2 ^ - e)%Z. rewrite IZR_Zpower by lia.
  rewrite <- bpow_opp, Z.opp_involutive. reflexivity.
Qed.

Theorem enough_is_right n d x : (0 < n)%Z -> (0 < d)%Z -> enough n d x = true -> ln (IZR n / IZR d) <= double x.
Proof.
  intros N D H. apply andb_true_iff in H. destruct H as [S H]. apply at_most_correct in H. cbn [denote] in H.
  rewrite (power_is x S) in H. apply (logarithm n d (double x)); assumption.
Qed.

Theorem is_least_is_right n d x : (0 < n)%Z -> (0 < d)%Z -> is_least n d x = true ->
  forall epsilon, is_double epsilon -> ln (IZR n / IZR d) <= epsilon <-> double x <= epsilon.
Proof.
  intros N D H. unfold is_least in H. rewrite !andb_true_iff in H. destruct H as [[[F L] At] Below].
  apply (enough_is_right _ _ _ N D) in At. apply andb_true_iff in Below. destruct Below as [S Below].
  apply at_most_correct in Below. cbn [denote] in Below. rewrite (power_is _ S) in Below.
  assert (B : double (previous x) < ln (IZR n / IZR d)).
  { apply (logarithm n d); try assumption. assert (0 < 1 / IZR (2 ^ 100)) by (apply Rdiv_lt_0_compat; [lra|apply IZR_lt;
      reflexivity]). lra. }
  generalize (Bpred_correct 53 1024 eq_refl eq_refl x). change (Bpred 53 1024 _ _ x) with (previous x). intros Pred.
  assert (X : 0 < double x /\ is_finite 53 1024 x = true).
  { destruct x as [| | |[|] m e H]; try discriminate. split; [|reflexivity].
    apply (F2R_gt_0 radix2 (Float radix2 (Zpos m) e)). reflexivity. }
  destruct X as [X Finite]. intros y Y. split; [intros Ln|lra]. apply Rnot_lt_le. intros Less.
  assert (Valid : Valid_exp (FLT_exp (-1074) 53)) by (apply FLT_exp_valid; reflexivity).
  assert (Format : is_double (double x)) by apply generic_format_B2R.
  assert (P : 0 <= pred radix2 (FLT_exp (-1074) 53) (double x)) by (apply pred_ge_0; assumption).
  specialize (Pred Finite). rewrite Rlt_bool_true in Pred.
  - destruct Pred as [E _]. apply (Rlt_irrefl y). apply Rle_lt_trans with (double (previous x)); [|lra].
    unfold double. rewrite E. apply pred_ge_gt; assumption.
  - apply Rlt_le_trans with 0; [|exact P]. apply Ropp_lt_gt_0_contravar, bpow_gt_0.
Qed.
