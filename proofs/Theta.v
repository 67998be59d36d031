(* The sum of a bell curve over the integers is largest when its centre is an integer. It is usually read off Poisson's
   summation formula; here is a proof without it. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz FinFun.
From Flocq Require Import Core.
From Dpnoise Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Definition bell (t c : R) (x : Z) : R := exp (- (t * (IZR x - c) ^ 2)).
Definition theta (t c : R) : R := sum_of (bell t c).

Lemma bell_is_positive t c x : 0 < bell t c x.
Proof. apply exp_pos. Qed.
Lemma bell_falls t c c' x x' : 0 < t -> (IZR x' - c') ^ 2 <= (IZR x - c) ^ 2 -> bell t c x <= bell t c' x'.
Proof. intros T H. apply Raux.exp_le, Ropp_le_contravar, Rmult_le_compat_l; lra. Qed.

(* It is finite, with a bound that does not depend on the centre. *)
Lemma centred_is_finite t : 0 < t -> sum_at_most (bell t 0) (2 * / (1 - exp (- t))).
Proof.
  intros T. assert (Q : 0 <= exp (- t) < 1).
  { split; [apply Rlt_le, exp_pos|]. rewrite <- exp_0. apply exp_increasing. lra. }
  apply (at_most_le _ (fun x => exp (- t) ^ Z.abs_nat x)).
  - intros x. assert (E : forall n, exp (- t) ^ n = exp (- t * INR n)).
    { induction n as [|n IH]; [rewrite Rmult_0_r, exp_0; reflexivity|]. rewrite S_INR. simpl. rewrite IH, <- exp_plus.
      f_equal. ring. }
    rewrite E. apply Raux.exp_le. rewrite INR_IZR_INZ, Zabs2Nat.id_abs, Rminus_0_r.
    assert (IZR (Z.abs x) <= IZR x ^ 2); [|nra]. simpl. rewrite Rmult_1_r, <- mult_IZR. apply IZR_le. nia.
  - apply (at_most_through (fun x => ((x <? 0)%Z, Z.abs_nat x)) (fun p => exp (- t) ^ snd p)).
    + intros x y E. injection E. intros A B. destruct (Z.ltb_spec x 0), (Z.ltb_spec y 0); try discriminate; lia.
    + apply (sums_at_most _ (fun _ : bool => / (1 - exp (- t)))); [intros; apply pow_le; lra| |].
      * intros sign. apply geometric_at_most, Q.
      * assert (0 < / (1 - exp (- t))) by (apply Rinv_0_lt_compat; lra).
        replace (2 * / (1 - exp (- t))) with (/ (1 - exp (- t)) + / (1 - exp (- t))) by ring.
        apply (is_sum_of_two (fun _ => / (1 - exp (- t)))). intros; lra.
Qed.

Lemma theta_is_bounded t : 0 < t -> exists b, forall c, sum_at_most (bell t c) b.
Proof.
  intros T. set (b := 2 * / (1 - exp (- t))). exists (b + b). intros c. set (n := Zfloor c).
  generalize (Zfloor_lb c) (Zfloor_ub c). fold n. intros L U.
  apply (at_most_le _ (fun x => bell t 0 (x - n) + bell t 0 (x - n - 1))).
  - intros x. generalize (bell_is_positive t 0 (x - n)) (bell_is_positive t 0 (x - n - 1)). intros P P'.
    destruct (Z_le_gt_dec x n) as [H|H].
    + apply Rle_trans with (bell t 0 (x - n)); [|lra]. apply bell_falls; [exact T|]. apply IZR_le in H.
      rewrite minus_IZR. nra.
    + apply Rle_trans with (bell t 0 (x - n - 1)); [|lra]. apply bell_falls; [exact T|].
      assert (G : (n + 1 <= x)%Z) by lia. apply IZR_le in G. rewrite plus_IZR in G. rewrite !minus_IZR. nra.
  - apply at_most_plus; apply (at_most_through (fun x => _) (bell t 0)); try apply centred_is_finite, T;
      intros x y; lia.
Qed.

Theorem theta_is_a_sum t c : 0 < t -> is_sum (bell t c) (theta t c).
Proof. intros T. destruct (theta_is_bounded t T) as [b B]. apply (is_sum_of _ b), B. Qed.

Lemma theta_is_positive t : 0 < t -> 0 < theta t 0.
Proof.
  intros T. destruct (theta_is_a_sum t 0 T) as [U _]. generalize (U [0%Z]). cbn [sum_over fold_right].
  generalize (bell_is_positive t 0 0). intros P H. apply Rlt_le_trans with (bell t 0 0 + 0); [lra|]. apply H.
  repeat constructor. simpl. tauto.
Qed.

Lemma theta_at_an_integer t n : 0 < t -> theta t (IZR n) = theta t 0.
Proof.
  intros T. apply is_sum_unique, (is_sum_ext (fun x => bell t 0 (x - n))).
  - intros x. unfold bell. rewrite minus_IZR, Rminus_0_r. reflexivity.
  - apply (is_sum_through (fun x => (x - n)%Z) (fun x => (x + n)%Z)); [intros; lia|intros; lia|apply theta_is_a_sum, T].
Qed.

Section Duplication.
Variable t : R.
Hypothesis t_positive : 0 < t.

(* A curve that is wider by the root of 2, at the even or at the odd integers. *)
Definition part (odd : bool) (c : R) (i : Z) : R := bell (t / 2) c (2 * i + Z.b2z odd).
Definition part_sum (c : R) (odd : bool) : R := sum_of (part odd c).

Lemma part_sum_is odd c : is_sum (part odd c) (part_sum c odd).
Proof.
  destruct (theta_is_bounded (t / 2) ltac:(lra)) as [b B]. apply (is_sum_of _ b).
  apply (at_most_through (fun i => (2 * i + Z.b2z odd)%Z) (bell (t / 2) c)); [|apply B]. intros i j. lia.
Qed.

(* Sum and difference of two integers are any two integers of the same parity. *)
Lemma product_of_two a b : theta t a * theta t b
  = part_sum (a + b) true * part_sum (a - b) true + part_sum (a + b) false * part_sum (a - b) false.
Proof.
  assert (Positive : forall odd c i, 0 <= part odd c i) by (intros; apply Rlt_le, exp_pos).
  assert (Sum : forall odd c, 0 <= part_sum c odd)
    by (intros odd c; apply (proj1 (part_sum_is odd c) [] (NoDup_nil _))).
  set (join := fun p : bool * (Z * Z) => let '(odd, (i, j)) := p in (i + j + Z.b2z odd, i - j)%Z).
  set (split := fun p : Z * Z => let '(x, y) := p in (Z.odd (x + y), (Z.div2 (x + y), Z.div2 (x - y)))).
  set (both := fun p => bell t a (fst p) * bell t b (snd p)).
  transitivity (sum_of (fun p => both (join p))).
  - symmetry. apply is_sum_unique, (is_sum_through join split).
    + intros [odd [i j]]. unfold split, join.
      replace (i + j + Z.b2z odd + (i - j))%Z with (2 * i + Z.b2z odd)%Z by ring.
      replace (i + j + Z.b2z odd - (i - j))%Z with (2 * j + Z.b2z odd)%Z by ring.
      generalize (Z.div2_odd (2 * i + Z.b2z odd)) (Z.div2_odd (2 * j + Z.b2z odd)).
      destruct odd, (Z.odd (2 * i + _)), (Z.odd (2 * j + _)); cbn [Z.b2z]; intros; repeat f_equal; lia.
    + intros [x y]. unfold split, join. generalize (Z.div2_odd (x + y)) (Z.div2_odd (x - y)).
      rewrite Z.odd_sub, Z.odd_add. intros. f_equal; lia.
    + apply is_sum_of_products; try (intros; apply Rlt_le, exp_pos); apply theta_is_a_sum, t_positive.
  - apply is_sum_unique, (is_sum_of_sums _ (fun odd => part_sum (a + b) odd * part_sum (a - b) odd)).
    + intros p. apply Rmult_le_pos; apply Rlt_le, exp_pos.
    + intros odd. apply (is_sum_ext (fun p => part odd (a + b) (fst p) * part odd (a - b) (snd p))).
      * intros [i j]. unfold both, join, part, bell, fst, snd. rewrite <- !exp_plus. f_equal.
        rewrite minus_IZR, !plus_IZR, !mult_IZR. field.
      * apply is_sum_of_products; auto using part_sum_is.
    + apply (is_sum_of_two (fun odd => part_sum (a + b) odd * part_sum (a - b) odd)). intros.
      apply Rmult_le_pos; auto.
Qed.

(* By Cauchy's inequality for the two parities. *)
Lemma fourth_power c : theta t c ^ 4 <= theta t (2 * c) * theta t 0 ^ 3.
Proof.
  generalize (product_of_two c c) (product_of_two (2 * c) 0) (product_of_two 0 0).
  replace (c + c) with (2 * c) by ring. replace (c - c) with 0 by ring. rewrite !Rplus_0_r, !Rminus_0_r.
  generalize (part_sum (2 * c) true) (part_sum (2 * c) false) (part_sum 0 true) (part_sum 0 false).
  intros x x' y y' E F G.
  replace (theta t c ^ 4) with ((theta t c * theta t c) ^ 2) by ring.
  replace (theta t (2 * c) * theta t 0 ^ 3) with (theta t (2 * c) * theta t 0 * (theta t 0 * theta t 0)) by ring.
  rewrite E, F, G. generalize (pow2_ge_0 (x * y' - x' * y)). lra.
Qed.
End Duplication.

(* What is bounded, and has a fourth power of at most another of its values, is at most 1. *)
Lemma bounded_powers (r : R -> R) b : (forall c, 0 <= r c <= b) -> (forall c, r c ^ 4 <= r (2 * c))
  -> forall c, r c <= 1.
Proof.
  intros B H. destruct (completeness (fun y => exists c, y = r c)) as [m [U L]].
  - exists b. intros y [c ->]. apply B.
  - exists (r 0), 0. reflexivity.
  - assert (M : forall c, r c <= m) by (intros c; apply U; exists c; reflexivity).
    destruct (Rle_lt_dec m 1) as [M1|M1]; [intros c; apply Rle_trans with m; auto|]. exfalso.
    assert (m <= (m + 1) / 2); [|lra]. apply L. intros y [c ->]. apply Rnot_lt_le. intros C.
    generalize (H c) (M (2 * c)). assert (m <= r c ^ 2) by nra. assert (r c ^ 2 < r c ^ 4) by nra. lra.
Qed.

Theorem theta_is_largest_at_0 t c : 0 < t -> theta t c <= theta t 0.
Proof.
  intros T. generalize (theta_is_positive t T). intros P. destruct (theta_is_bounded t T) as [b B].
  assert (theta t c / theta t 0 <= 1) as H; [|apply Rmult_le_compat_r with (r := theta t 0) in H; [|lra];
    unfold Rdiv in H; rewrite Rmult_assoc, Rinv_l in H; lra].
  revert c. apply (bounded_powers (fun c => theta t c / theta t 0) (b / theta t 0)); intros c.
  - destruct (theta_is_a_sum t c T) as [U L]. split.
    + apply Rmult_le_pos; [apply (U [] (NoDup_nil _))|apply Rlt_le, Rinv_0_lt_compat, P].
    + apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, P|apply L, B].
  - generalize (fourth_power t T c). intros F. apply Rmult_le_reg_r with (theta t 0 ^ 4); [apply pow_lt, P|].
    replace ((theta t c / theta t 0) ^ 4 * theta t 0 ^ 4) with (theta t c ^ 4) by (field; lra).
    replace (theta t (2 * c) / theta t 0 * theta t 0 ^ 4) with (theta t (2 * c) * theta t 0 ^ 3) by (field; lra).
    exact F.
Qed.
