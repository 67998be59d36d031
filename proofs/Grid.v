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

Definition pairs (f : R -> R -> R) (us vs : list R) : R :=
  fold_right Rplus 0 (map (fun '(u, v) => f u v) (combine us vs)).
Definition distance : list R -> list R -> R := pairs (fun x y => Rabs (x - y)).
Definition grid_distance (xs ys : list R) : Z := fold_right Z.add 0%Z (map (fun '(x,
  y) => Z.abs (nearest x - nearest y)) (combine xs ys)).

Lemma grid_distance_below xs : forall ys, length xs = length ys -> xs <> [] ->
  IZR (grid_distance xs ys) < distance xs ys / g + INR (length xs).
Proof.
  assert (One : forall x y, IZR (Z.abs (nearest x - nearest y)) < Rabs (x - y) / g + 1).
  { intros x y. apply Rle_lt_trans with (IZR (Zceil (Rabs (x - y) / g))); [apply IZR_le, distance_of_one; lra|].
    generalize (Zceil_lb (Rabs (x - y) / g)). lra. }
  induction xs as [|x xs IH]; intros [|y ys] L N; try discriminate; [congruence|].
  unfold grid_distance, distance, pairs in *. cbn [combine map fold_right]. rewrite plus_IZR. specialize (One x y).
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

(* In the L2 norm: below D / g + sqrt m. *)
Lemma squares_are_positive f xs ys : 0 <= pairs (fun x y => f x y * f x y) xs ys.
Proof.
  unfold pairs. induction (combine xs ys) as [|[x y] l IH]; simpl in *; [lra|].
  generalize (Rle_0_sqr (f x y)). unfold Rsqr. lra.
Qed.
Lemma square_is_positive us : 0 <= pairs Rmult us us.
Proof.
  unfold pairs. induction us as [|u us IH]; simpl in *; [lra|]. generalize (Rle_0_sqr u). unfold Rsqr. lra.
Qed.

Lemma cauchy_schwarz us : forall vs, length us = length vs ->
  pairs Rmult us vs * pairs Rmult us vs <= pairs Rmult us us * pairs Rmult vs vs.
Proof.
  induction us as [|u us IH]; intros [|v vs] L; try discriminate; [unfold pairs; simpl; lra|]. injection L as L.
  specialize (IH vs L). generalize (square_is_positive us) (square_is_positive vs).
  change (pairs Rmult (u :: us) (v :: vs)) with (u * v + pairs Rmult us vs).
  change (pairs Rmult (u :: us) (u :: us)) with (u * u + pairs Rmult us us).
  change (pairs Rmult (v :: vs) (v :: vs)) with (v * v + pairs Rmult vs vs).
  set (S := pairs Rmult us vs) in *. set (U := pairs Rmult us us) in *. set (V := pairs Rmult vs vs) in *. intros PU PV.
  assert (0 <= (2 * (u * v) * S - (u * u * V + v * v * U)) * -1); [|nra].
  assert (Q : (2 * (u * v) * S) * (2 * (u * v) * S) <= (u * u * V + v * v * U) * (u * u * V + v * v * U)).
  { assert (0 <= (u * u * V - v * v * U) * (u * u * V - v * v * U)) by apply Rle_0_sqr.
    assert (0 <= (u * v) * (u * v)) by apply Rle_0_sqr. nra. }
  assert (P : 0 <= u * u * V + v * v * U) by nra.
  generalize (Rsqr_incr_0_var _ _ Q P). lra.
Qed.

Lemma rest_is_short xs : xs <> [] -> forall ys, length xs = length ys ->
  let vs := map (fun '(x, y) => IZR (nearest x - nearest y) - (x - y) / g) (combine xs ys) in
  pairs Rmult vs vs < INR (length xs).
Proof.
  unfold pairs. cbv zeta. induction xs as [|x xs IH]; intros N [|y ys] L; try discriminate; [congruence|].
  injection L as L. cbn [combine map fold_right length]. rewrite S_INR.
  assert (One : (IZR (nearest x - nearest y) - (x - y) / g) * (IZR (nearest x - nearest y) - (x - y) / g) < 1).
  { unfold nearest. rewrite minus_IZR. generalize (Zfloor_lb (x / g + 1/2)) (Zfloor_ub (x / g + 1/2)).
    generalize (Zfloor_lb (y / g + 1/2)) (Zfloor_ub (y / g + 1/2)). intros.
    replace ((x - y) / g) with (x / g - y / g) by (field; lra). nra. }
  destruct xs as [|x' xs].
  - destruct ys; [|discriminate]. simpl in *. lra.
  - specialize (IH ltac:(discriminate) ys L). lra.
Qed.

Theorem distance_in_L2 xs : forall ys D, length xs = length ys -> xs <> [] ->
  sqrt (pairs (fun x y => (x - y) * (x - y)) xs ys) <= D ->
  sqrt (pairs (fun x y => IZR (nearest x - nearest y) * IZR (nearest x - nearest y)) xs ys) < D / g + sqrt (INR
      (length xs)).
Proof.
  intros ys D L N H.
  set (us := map (fun '(x, y) => (x - y) / g) (combine xs ys)).
  set (vs := map (fun '(x, y) => IZR (nearest x - nearest y) - (x - y) / g) (combine xs ys)).
  assert (Lv : length us = length vs) by (unfold us, vs; rewrite !map_length; reflexivity).
  assert (E : pairs (fun x y => IZR (nearest x - nearest y) * IZR (nearest x - nearest y)) xs ys
    = pairs Rmult us us + 2 * pairs Rmult us vs + pairs Rmult vs vs).
  { unfold pairs, us, vs. clear - g_positive. induction (combine xs ys) as [|[x y] l IH]; simpl; [lra|]. simpl in *.
      rewrite IH. ring. }
  assert (U : pairs Rmult us us = pairs (fun x y => (x - y) * (x - y)) xs ys / g / g).
  { unfold pairs, us. clear - g_positive. induction (combine xs ys) as [|[x y] l IH]; simpl; [field; lra|].
    simpl in *. rewrite IH. field. lra. }
  generalize (rest_is_short xs N ys L). fold vs. intros V.
  generalize (cauchy_schwarz us vs Lv) (square_is_positive us) (square_is_positive vs). intros C PU PV.
  set (A := pairs Rmult us us) in *. set (B := pairs Rmult us vs) in *. set (W := pairs Rmult vs vs) in *.
  assert (Pos : 0 <= D / g).
  { apply Rmult_le_pos; [eapply Rle_trans; [apply sqrt_pos|exact H]|apply Rlt_le, Rinv_0_lt_compat, g_positive]. }
  assert (SA : sqrt A <= D / g).
  { rewrite U. generalize (squares_are_positive Rminus xs ys). intros X.
    apply Rsqr_incr_0_var; [|exact Pos]. rewrite Rsqr_sqrt by (unfold Rdiv; repeat apply Rmult_le_pos; try exact X;
        apply Rlt_le, Rinv_0_lt_compat, g_positive).
    unfold Rsqr. apply Rmult_le_reg_r with (g * g); [nra|].
    replace (D / g * (D / g) * (g * g)) with (D * D) by (field; lra).
    replace (pairs (fun x y => (x - y) * (x - y)) xs ys / g / g * (g * g)) with (pairs (fun x y => (x - y) * (x - y))
        xs ys) by (field; lra).
    rewrite <- (sqrt_sqrt _ X). generalize (sqrt_pos (pairs (fun x y => (x - y) * (x - y)) xs ys)). nra. }
  apply Rle_lt_trans with (sqrt A + sqrt W).
  - rewrite E. apply Rsqr_incr_0_var; [|generalize (sqrt_pos A) (sqrt_pos W); lra].
    rewrite Rsqr_sqrt.
    + unfold Rsqr. assert (T : B <= sqrt A * sqrt W).
      { apply Rsqr_incr_0_var; [|apply Rmult_le_pos; apply sqrt_pos]. unfold Rsqr.
        replace (sqrt A * sqrt W * (sqrt A * sqrt W)) with ((sqrt A * sqrt A) * (sqrt W * sqrt W)) by ring. rewrite
            !sqrt_sqrt by assumption. exact C. }
      generalize (sqrt_sqrt A PU) (sqrt_sqrt W PV). nra.
    + rewrite <- E. apply (squares_are_positive (fun x y => IZR (nearest x - nearest y))).
  - apply Rplus_le_lt_compat; [exact SA|]. apply sqrt_lt_1; [exact PV|apply pos_INR|exact V].
Qed.

(* Sums of clamped values: what a row counts for, None for a missing one. *)
Section Sum.
Variables a b : R.
Hypothesis bounds : a <= b.
Definition clamped (x : R) : Z := nearest (Rmin (Rmax x a) b).
Definition counts (missing : Z) (row : option R) : Z := match row with Some x => clamped x | None => missing end.
Definition sum (missing : Z) (rows : list (option R)) : Z := fold_right Z.add 0%Z (map (counts missing) rows).

Lemma nearest_rises x y : x <= y -> (nearest x <= nearest y)%Z.
Proof. intros H. generalize (nearest_moves x y 0). rewrite Rmult_0_l. intros M. specialize (M ltac:(lra)). lia. Qed.

Lemma clamped_between x : (nearest a <= clamped x <= nearest b)%Z.
Proof.
  unfold clamped. split; apply nearest_rises; [|apply Rmin_r]. apply Rmin_glb; [apply Rmax_r|exact bounds].
Qed.

Lemma sum_in_parts missing before after : sum missing (before ++ after) = (sum missing before + sum missing after)%Z.
Proof. unfold sum. induction before as [|row before IH]; simpl in *; [reflexivity|]. rewrite IH. ring. Qed.

Theorem sum_with_one_row_more before row after :
  (Z.abs (sum 0 (before ++ row :: after) - sum 0 (before ++ after)) <= Z.max (Z.abs (nearest a)) (Z.abs (nearest b)))%Z.
Proof.
  rewrite !sum_in_parts. change (sum 0 (row :: after)) with (counts 0 row + sum 0 after)%Z.
  destruct row as [x|]; simpl; [generalize (clamped_between x)|]; lia.
Qed.

Theorem sum_with_another_row before row other after : let middle := nearest ((a + b) / 2) in
  (Z.abs (sum middle (before ++ row :: after) - sum middle (before ++ other :: after)) <= nearest b - nearest a)%Z.
Proof.
  intros middle. rewrite !sum_in_parts.
  change (sum middle (row :: after)) with (counts middle row + sum middle after)%Z.
  change (sum middle (other :: after)) with (counts middle other + sum middle after)%Z.
  assert (M : (nearest a <= middle <= nearest b)%Z) by (split; apply nearest_rises; lra).
  destruct row as [x|], other as [y|]; simpl; try generalize (clamped_between x); try generalize (clamped_between y);
      lia.
Qed.
End Sum.

(* Such a sum, with noise of scale distance / epsilon. *)
Theorem sum_is_private epsilon (distance s s' z : Z) : 0 < epsilon -> (0 < distance)%Z -> (Z.abs (s - s') <=
    distance)%Z ->
  let b := IZR distance / epsilon in
  exp (- (IZR (Z.abs (z - s)) / b)) <= exp epsilon * exp (- (IZR (Z.abs (z - s')) / b)).
Proof.
  intros P D H b. apply IZR_lt in D. assert (B : 0 < b) by (apply Rdiv_lt_0_compat; assumption). rewrite <- exp_plus.
  apply Raux.exp_le. apply Rmult_le_reg_r with b; [exact B|]. unfold Rdiv.
  replace (- (IZR (Z.abs (z - s)) * / b) * b) with (- IZR (Z.abs (z - s))) by (field; lra).
  replace ((epsilon + - (IZR (Z.abs (z - s')) * / b)) * b) with (epsilon * b - IZR (Z.abs (z - s'))) by (field; lra).
  replace (epsilon * b) with (IZR distance) by (unfold b; field; lra). rewrite <- opp_IZR, <- minus_IZR. apply IZR_le.
      lia.
Qed.
End Grid.
