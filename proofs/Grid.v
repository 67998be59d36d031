(* Real values on a grid: how far neighbours are apart there, and the privacy of noise that is exact. *)
From Coq Require Import Reals ZArith List Lia Lra Psatz.
From Flocq Require Import Core.
Import ListNotations.
Open Scope R_scope.

Section Grid.
Variable g : R.
Hypothesis g_positive : 0 < g.

(* To the nearest point of the grid, half up. *)
Definition nearest (x : R) : Z := Zfloor (x / g + 1/2).

Lemma nearest_moves x y d : x <= y + IZR d * g -> (nearest x <= nearest y + d)%Z.
Proof.
  intros H. unfold nearest. replace (Zfloor (y / g + 1/2) + d)%Z with (Zfloor (y / g + 1/2 + IZR d)).
  - apply Zfloor_le. assert (x / g <= (y + IZR d * g) / g) by (apply Rmult_le_compat_r; [apply Rlt_le,
      Rinv_0_lt_compat|]; assumption).
    replace ((y + IZR d * g) / g) with (y / g + IZR d) in H0 by (field; lra). lra.
  - apply Zfloor_imp. rewrite !plus_IZR. generalize (Zfloor_lb (y / g + 1/2)) (Zfloor_ub (y / g + 1/2)). lra.
Qed.

(* One value: a distance of at most ceiling(D / g). *)
Lemma distance_of_one x y D : Rabs (x - y) <= D -> (Z.abs (nearest x - nearest y) <= Zceil (D / g))%Z.
Proof.
  intros H. apply Rabs_le_inv in H. assert (C : D <= IZR (Zceil (D / g)) * g).
  { generalize (Zceil_ub (D / g)). intros U. apply Rmult_le_compat_r with (r := g) in U; [|lra].
    unfold Rdiv in U. rewrite Rmult_assoc, Rinv_l, Rmult_1_r in U by lra. exact U. }
  generalize (nearest_moves x y (Zceil (D / g)) ltac:(lra)) (nearest_moves y x (Zceil (D / g)) ltac:(lra)). lia.
Qed.

Definition distance (xs ys : list R) : R := fold_right Rplus 0 (map (fun '(x, y) => Rabs (x - y)) (combine xs ys)).
Definition grid_distance (xs ys : list R) : Z := fold_right Z.add 0%Z (map (fun '(x,
  y) => Z.abs (nearest x - nearest y)) (combine xs ys)).

Lemma grid_distance_below xs : forall ys, length xs = length ys -> xs <> [] ->
  IZR (grid_distance xs ys) < distance xs ys / g + INR (length xs).
Proof.
  assert (One : forall x y, IZR (Z.abs (nearest x - nearest y)) < Rabs (x - y) / g + 1).
  { intros x y. apply Rle_lt_trans with (IZR (Zceil (Rabs (x - y) / g))); [apply IZR_le, distance_of_one; lra|].
    generalize (Zceil_lb (Rabs (x - y) / g)). lra. }
  induction xs as [|x xs IH]; intros [|y ys] L N; try discriminate; [congruence|].
  unfold grid_distance, distance in *. cbn [combine map fold_right]. rewrite plus_IZR. specialize (One x y).
  replace ((Rabs (x - y) + fold_right Rplus 0 (map (fun '(x, y) => Rabs (x - y)) (combine xs ys))) / g)
    with (Rabs (x - y) / g + fold_right Rplus 0 (map (fun '(x, y) => Rabs (x - y)) (combine xs ys)) / g) by (field;
      lra).
  cbn [length]. rewrite S_INR. destruct xs as [|x' xs].
  - destruct ys; [|discriminate]. simpl. unfold Rdiv. rewrite Rmult_0_l. simpl in One. lra.
  - injection L as L. specialize (IH ys L ltac:(discriminate)). lra.
Qed.

(* m values: a distance of at most ceiling(D / g) + m - 1. *)
Theorem distance_of_many xs ys D : length xs = length ys -> xs <> [] -> distance xs ys <= D ->
  (grid_distance xs ys <= Zceil (D / g) + Z.of_nat (length xs) - 1)%Z.
Proof.
  intros L N H. generalize (grid_distance_below xs ys L N). intros B.
  assert (distance xs ys / g <= IZR (Zceil (D / g))).
  { eapply Rle_trans; [|apply Zceil_ub]. apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat|]; assumption. }
  assert (grid_distance xs ys < Zceil (D / g) + Z.of_nat (length xs))%Z; [|lia].
  apply lt_IZR. rewrite plus_IZR, <- INR_IZR_INZ. lra.
Qed.

(* Noise whose probabilities are proportional to exp(-|n| / b): what is released of one input has at most e^epsilon
   times the probability that another one gives it, when b is the distance over epsilon. *)
Definition weight (b : R) (xs : list R) (zs : list Z) : R :=
  fold_right Rmult 1 (map (fun '(x, z) => exp (- (IZR (Z.abs (z - nearest x)) / b))) (combine xs zs)).

Lemma weight_nonnegative b xs zs : 0 <= weight b xs zs.
Proof. unfold weight. induction (combine xs zs) as [|[a c] l H]; simpl; [lra|].
apply Rmult_le_pos; [apply Rlt_le, exp_pos|exact H]. Qed.

Lemma weights_are_near b xs : 0 < b -> forall ys zs, length xs = length ys -> length xs = length zs ->
  weight b xs zs <= exp (IZR (grid_distance xs ys) / b) * weight b ys zs.
Proof.
  intros B. induction xs as [|x xs IH]; intros [|y ys] [|z zs] L M; try discriminate.
  - unfold weight, grid_distance. simpl. unfold Rdiv. rewrite Rmult_0_l, exp_0. lra.
  - injection L as L. injection M as M. specialize (IH ys zs L M).
    change (grid_distance (x :: xs) (y :: ys)) with (Z.abs (nearest x - nearest y) + grid_distance xs ys)%Z.
    change (weight b (x :: xs) (z :: zs)) with (exp (- (IZR (Z.abs (z - nearest x)) / b)) * weight b xs zs).
    change (weight b (y :: ys) (z :: zs)) with (exp (- (IZR (Z.abs (z - nearest y)) / b)) * weight b ys zs).
    rewrite plus_IZR. unfold Rdiv. rewrite Rmult_plus_distr_r, exp_plus.
    match goal with |- _ <= ?u * ?E * (?v * ?V) => replace (u * E * (v * V)) with (u * v * (E * V)) by ring end.
    apply Rmult_le_compat; [apply Rlt_le, exp_pos|apply weight_nonnegative| |exact IH]. rewrite <- exp_plus.
    apply Raux.exp_le.
    rewrite <- !Ropp_mult_distr_l_reverse, <- Rmult_plus_distr_r.
    apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, B|]. rewrite <- !opp_IZR, <- plus_IZR. apply IZR_le. lia.
Qed.

Theorem release_is_private epsilon xs ys zs D : 0 < epsilon -> length xs = length ys -> length xs = length zs
  -> xs <> [] ->
  distance xs ys <= D -> (0 < Zceil (D / g) + Z.of_nat (length xs) - 1)%Z ->
  let b := IZR (Zceil (D / g) + Z.of_nat (length xs) - 1) / epsilon in
  weight b xs zs <= exp epsilon * weight b ys zs.
Proof.
  intros P L M N H S b. assert (B : 0 < b) by (apply Rdiv_lt_0_compat; [apply IZR_lt|]; assumption).
  eapply Rle_trans; [apply (weights_are_near b xs B ys zs L M)|]. apply Rmult_le_compat_r.
  - apply weight_nonnegative.
  - apply Raux.exp_le. apply Rmult_le_reg_r with b; [exact B|]. unfold Rdiv at 1.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    replace (epsilon * b) with (IZR (Zceil (D / g) + Z.of_nat (length xs) - 1)) by (unfold b; field; lra).
    apply IZR_le, distance_of_many; assumption.
Qed.
End Grid.
