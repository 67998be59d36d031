(* The kernel's 2^(e - t), for every double t in [0, 1000] and whole e, has a relative error below 2^-45.9: the whole
   part k and the rest t - k are exact, and what remains is a polynomial of degree 9, whose even and odd powers are
   summed by Horner's rule, with every operation rounded or with fused multiplications and additions. *)
From Coq Require Import Reals ZArith Lra Lia.
From Flocq Require Import Core Sterbenz.
From Interval Require Import Tactic.
From Gappa Require Import Gappa_tactic.
From Dpnoise Require Import Rounding.
From Dpnoise.generated Require Import Exponentials.
Open Scope R_scope.

Definition separate (r : R) : R :=
  let s := rnd (r * r) in
  let even := rnd (rnd (rnd (rnd (rnd (rnd (rnd (rnd (c8 * s) + c6) * s) + c4) * s) + c2) * s) + c0) in
  let odd := rnd (rnd (rnd (rnd (rnd (rnd (rnd (rnd (c9 * s) + c7) * s) + c5) * s) + c3) * s) + c1) in
  rnd (rnd (odd * r) + even).

Definition fused (r : R) : R :=
  let s := rnd (r * r) in
  let even := rnd (rnd (rnd (rnd (c8 * s + c6) * s + c4) * s + c2) * s + c0) in
  let odd := rnd (rnd (rnd (rnd (c9 * s + c7) * s + c5) * s + c3) * s + c1) in
  rnd (odd * r + even).

Definition exact (r : R) : R :=
  let s := r * r in
  ((((c9 * s + c7) * s + c5) * s + c3) * s + c1) * r + ((((c8 * s + c6) * s + c4) * s + c2) * s + c0).

Lemma separate_error r : -1/2 <= r <= 1/2 -> Rabs (separate r - exact r) <= 1 / 2251799813685248.
Proof. intros H. unfold separate, exact, rnd. cbv zeta. gappa. Qed.

Lemma fused_error r : -1/2 <= r <= 1/2 -> Rabs (fused r - exact r) <= 1 / 2251799813685248.
Proof. intros H. unfold fused, exact, rnd. cbv zeta. gappa. Qed.

(* 2^-46 *)
Lemma polynomial_error r : -1/2 <= r <= 1/2 -> Rabs (exact r * exp (r * ln 2) - 1) <= 1 / 70368744177664.
Proof. intros H. unfold exact. cbv zeta. interval with (i_bisect r, i_taylor r, i_prec 90, i_degree 14). Qed.

Definition rounded_polynomial (is_fused : bool) := if is_fused then fused else separate.

Lemma rounded_polynomial_error f r : -1/2 <= r <= 1/2
  -> Rabs (rounded_polynomial f r - exact r) <= 1 / 2251799813685248.
Proof. destruct f; [apply fused_error|apply separate_error]. Qed.

(* 1.5 2^52: adding it rounds to a whole number. *)
Notation rounder := 6755399441055744%Z.

Definition whole (t : R) : Z := (ZnearestE (t + IZR rounder) - rounder)%Z.

Lemma whole_near t : Rabs (t - IZR (whole t)) <= 1/2.
Proof.
  unfold whole. rewrite minus_IZR.
  replace (t - (IZR (ZnearestE (t + IZR rounder)) - IZR rounder))
    with ((t + IZR rounder) - IZR (ZnearestE (t + IZR rounder))) by ring.
  generalize (Znearest_half (fun x => negb (Z.even x)) (t + IZR rounder)). lra.
Qed.

Lemma rounded_sum t : 0 <= t < 2251799813685248 -> rnd (t + IZR rounder) = IZR (whole t + rounder).
Proof.
  intros H. unfold rnd, round, scaled_mantissa, whole.
  assert (E : cexp radix2 (FLT_exp (-1074) 53) (t + IZR rounder) = 0%Z).
  { unfold cexp. rewrite (mag_unique_pos radix2 _ 53).
    - reflexivity.
    - change (bpow radix2 (53 - 1)) with (IZR (2 ^ 52)). change (bpow radix2 53) with (IZR (2 ^ 53)). simpl. lra. }
  rewrite E. simpl bpow. rewrite Rmult_1_r. unfold F2R. simpl. rewrite Rmult_1_r.
  f_equal. ring.
Qed.

Lemma whole_range t : 0 <= t <= 1000 -> (0 <= whole t <= 1001)%Z.
Proof.
  intros H. generalize (whole_near t). intros N. apply Rabs_le_inv in N.
  assert (-1 < IZR (whole t) < 1002) by lra.
  destruct H0 as [A B]. apply (lt_IZR (-1)) in A. apply (lt_IZR _ 1002) in B. lia.
Qed.

Lemma whole_back t : 0 <= t <= 1000 -> rnd (rnd (t + IZR rounder) - IZR rounder) = IZR (whole t).
Proof.
  intros H. rewrite rounded_sum, plus_IZR by lra.
  replace (IZR (whole t) + IZR rounder - IZR rounder) with (IZR (whole t)) by ring.
  apply rnd_double, whole_double. generalize (whole_range t H). lia.
Qed.

Lemma rest_exact t : double t -> 0 <= t <= 1000 ->
  rnd (t - rnd (rnd (t + IZR rounder) - IZR rounder)) = t - IZR (whole t).
Proof.
  intros F H. rewrite (whole_back t H). generalize (whole_range t H); intros K. apply rnd_double.
  generalize (whole_near t). intros N. apply Rabs_le_inv in N.
  destruct (Z.eq_dec (whole t) 0) as [Z|Z].
  - rewrite Z. rewrite Rminus_0_r. exact F.
  - assert (1 <= IZR (whole t)) by (apply IZR_le; lia).
    apply sterbenz; [apply FLT_exp_valid; red; reflexivity|apply FLT_exp_monotone|exact F|apply whole_double; lia|lra].
Qed.

Lemma bpow_exp e : bpow radix2 e = exp (IZR e * ln 2).
Proof. rewrite bpow_exp. simpl. reflexivity. Qed.

(* 67/64 2^-46 < 2^-45.9 *)
Theorem exponential_error f t e : double t -> 0 <= t <= 1000 ->
  Rabs (bpow radix2 (e - whole t) * rounded_polynomial f (t - IZR (whole t)) / exp ((IZR e - t) * ln 2) - 1)
    <= 67 / 64 / 70368744177664.
Proof.
  intros F H. set (k := whole t). set (r := t - IZR k).
  assert (D : -1/2 <= r <= 1/2) by (generalize (whole_near t); intros N; apply Rabs_le_inv in N; unfold r, k; lra).
  generalize (rounded_polynomial_error f r D) (polynomial_error r D); intros V T.
  set (value := rounded_polynomial f r) in *.
  rewrite bpow_exp, minus_IZR.
  replace (exp ((IZR e - IZR k) * ln 2) * value / exp ((IZR e - t) * ln 2) - 1)
    with (exp (r * ln 2) * (value - exact r) + (exact r * exp (r * ln 2) - 1)).
  2: { replace ((IZR e - IZR k) * ln 2) with ((IZR e - t) * ln 2 + r * ln 2) by (unfold r; ring).
       rewrite exp_plus. field. apply Rgt_not_eq, exp_pos. }
  assert (X : 0 <= exp (r * ln 2) <= 3/2) by (clear - D; split; interval).
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult, (Rabs_pos_eq _ (proj1 X)).
  assert (exp (r * ln 2) * Rabs (value - exact r) <= 3/2 * (1 / 2251799813685248)).
  { apply Rmult_le_compat; [lra|apply Rabs_pos|lra|exact V]. }
  lra.
Qed.

(* What an error of t of ten roundings does to 2^-t. *)
Lemma moved d : Rabs d <= 1001 * (1001/100 / 9007199254740992) -> Rabs (exp (d * ln 2) - 1) <= 9 / 10 / 1099511627776.
Proof. intros H. apply Rabs_le_inv in H. interval with (i_prec 120). Qed.
