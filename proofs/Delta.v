(* Approximate differential privacy by discrete Gaussian noise: the exact delta of one integer (Canonne, Kamath and
   Steinke 2020, theorem 7), that of numbers that are put on a grid at random before noise is added, and tails. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Flocq Require Import Core.
From Dpnoise Require Import Sums Theta Divergence Private Zcdp.
Open Scope R_scope.

Section Gaussian.
Variable sigma : R.
Hypothesis sigma_positive : 0 < sigma.
Let p := discrete_gaussian sigma.

(* What is computed: P(Y > t) - e^epsilon P(Y > t + a) for discrete Gaussian Y and t = epsilon sigma^2 / a - a / 2. *)
Definition above (t : R) (k : Z) : bool := if Rlt_dec t (IZR k) then true else false.
Definition curve (epsilon : R) (a : Z) : R :=
  let t := epsilon * sigma ^ 2 / IZR a - IZR a / 2 in
  chance (discrete_gaussian sigma) (above t) - exp epsilon * chance (discrete_gaussian sigma) (above (t + IZR a)).

Lemma probabilities_around x : probabilities (fun z => p (z - x)).
Proof. apply noisy_value_is_a_law, discrete_gaussian_is_a_law, sigma_positive. Qed.

Lemma probabilities_fall j k : (Z.abs j <= Z.abs k)%Z -> p k <= p j.
Proof.
  intros H. unfold p. rewrite !(discrete_gaussian_is sigma sigma_positive). apply Rmult_le_compat_r.
  - apply Rlt_le, Rinv_0_lt_compat, theta_is_positive, rate_is_positive, sigma_positive.
  - apply bell_falls; [apply rate_is_positive, sigma_positive|]. rewrite !Rminus_0_r, <- (pow2_abs (IZR j)).
    rewrite <- (pow2_abs (IZR k)), <- !abs_IZR. apply pow_incr. split; apply IZR_le; lia.
Qed.

(* Only the distance of two integers matters, and a larger one needs no smaller delta. *)
Definition apart (epsilon : R) (a : Z) : R := least_delta epsilon (fun z => p (z - 0)) (fun z => p (z - - a)).

Lemma delta_of_two epsilon x y : least_delta epsilon (fun z => p (z - x)) (fun z => p (z - y)) = apart epsilon (x - y).
Proof.
  apply is_sum_unique, (is_sum_ext (fun z => more epsilon (fun z => p (z - 0)) (fun z => p (z - - (x - y))) (z - x)%Z)).
  - intros z. unfold more. do 2 f_equal; [|f_equal]; f_equal; ring.
  - apply (is_sum_through (fun z => (z - x)%Z) (fun z => (z + x)%Z)); [intros; lia|intros; lia|].
    apply least_delta_is; apply probabilities_around.
Qed.

Lemma apart_is_even epsilon a : apart epsilon (- a) = apart epsilon a.
Proof.
  apply is_sum_unique, (is_sum_ext (fun z => more epsilon (fun z => p (z - 0)) (fun z => p (z - - a)) (- z)%Z)).
  - intros z. unfold more.
    assert (E : forall k, p (- k) = p k) by (intros; apply Rle_antisym; apply probabilities_fall; lia).
    rewrite <- (E (z - 0)%Z), <- (E (z - _)%Z). do 2 f_equal; [|f_equal]; f_equal; ring.
  - apply (is_sum_through Z.opp Z.opp); [intros; lia|intros; lia|]. apply least_delta_is; apply probabilities_around.
Qed.

Lemma apart_grows_above_0 epsilon a b : 0 <= epsilon -> (0 <= a <= b)%Z -> apart epsilon a <= apart epsilon b.
Proof.
  intros E H. apply (least_delta_is epsilon _ _ (probabilities_around 0) (probabilities_around (- a))).
  apply (at_most_le _ (more epsilon (fun z => p (z - 0)) (fun z => p (z - - b)))).
  - intros z. unfold more. apply Rmax_lub; [apply Rmax_l|]. generalize (exp_ineq1_le epsilon). intros X.
    generalize (proj1 (probabilities_around (- a)) z). intros P. simpl in P.
    generalize (Rmax_l 0 (p (z - 0) - exp epsilon * p (z - - b))). intros M.
    destruct (Rle_lt_dec (p (z - 0)) (exp epsilon * p (z - - a))) as [L|L]; [lra|].
    eapply Rle_trans; [|apply Rmax_r]. apply Rplus_le_compat_l, Ropp_le_contravar, Rmult_le_compat_l; [lra|].
    apply probabilities_fall. destruct (Z_le_gt_dec (Z.abs (z - - a)) (Z.abs (z - 0))) as [K|K]; [|lia].
    apply probabilities_fall in K. nra.
  - apply least_delta_is; apply probabilities_around.
Qed.

Lemma apart_grows epsilon a b : (0 <= a <= b)%Z -> apart epsilon a <= apart epsilon b.
Proof.
  intros H. destruct (Rle_lt_dec 0 epsilon) as [E|E]; [apply apart_grows_above_0; assumption|].
  generalize (apart_grows_above_0 (- epsilon) a b ltac:(lra) H) (exp_pos epsilon). intros G P.
  assert (Other : forall c, apart epsilon c + exp epsilon = 1 + exp epsilon * apart (- epsilon) c).
  { intros c. generalize (delta_of_the_other_way (- epsilon) _ _ (probabilities_around 0) (probabilities_around (- c))).
    rewrite Ropp_involutive, (delta_of_two (- epsilon)). replace (- c - 0)%Z with (- c)%Z by ring.
    rewrite apart_is_even. intros K. exact K. }
  generalize (Other a) (Other b). nra.
Qed.

Lemma chance_around x t : chance (fun z => p (z - x)) (above t) = chance p (above (t - IZR x)).
Proof.
  set (f := fun k => if above (t - IZR x) k then p k else 0). apply is_sum_unique, (is_sum_ext (fun z => f (z - x)%Z)).
  - intros z. unfold f, above. rewrite minus_IZR. destruct (Rlt_dec _ _), (Rlt_dec _ _); lra.
  - apply (is_sum_through (fun z => (z - x)%Z) (fun z => (z + x)%Z)); [intros; lia|intros; lia|].
    apply chance_is, discrete_gaussian_is_a_law, sigma_positive.
Qed.

Lemma curve_is_the_least_delta epsilon a : (0 < a)%Z -> curve epsilon a = apart epsilon a.
Proof.
  intros H. unfold curve, apart. set (t := _ / _ - _ / _).
  rewrite (worst_event epsilon _ _ (above t)); try apply probabilities_around.
  { rewrite !chance_around, opp_IZR. replace (t - 0) with t by ring. replace (t - - IZR a) with (t + IZR a) by ring.
    reflexivity. }
  intros k. rewrite Z.sub_0_r, Z.sub_opp_r. apply IZR_lt in H. generalize (pow_lt sigma 2 sigma_positive). intros S.
  set (d := IZR a / sigma ^ 2 * (IZR k - t)). assert (D : exp epsilon * p (k + a) = exp (- d) * p k).
  { unfold p, discrete_gaussian, gauss, Rdiv. rewrite <- !Rmult_assoc, <- !exp_plus. do 2 f_equal. unfold d, t.
    rewrite plus_IZR. field. split; lra. }
  generalize (discrete_gaussian_is_positive sigma sigma_positive k). fold p. intros P. rewrite D.
  assert (W : 0 < IZR a / sigma ^ 2) by (apply Rdiv_lt_0_compat; lra).
  unfold above. destruct (Rlt_dec _ _) as [L|L].
  - assert (exp (- d) <= 1) by (rewrite <- exp_0; apply Raux.exp_le; unfold d; nra). nra.
  - assert (1 <= exp (- d)) by (rewrite <- exp_0; apply Raux.exp_le; unfold d; nra). nra.
Qed.

Theorem curve_decides epsilon delta a : (0 < a)%Z -> curve epsilon a <= delta <->
  forall x y, (Z.abs (x - y) <= a)%Z ->
  private epsilon delta (fun z => discrete_gaussian sigma (z - x)) (fun z => discrete_gaussian sigma (z - y)).
Proof.
  intros H. rewrite curve_is_the_least_delta by exact H. fold p. split.
  - intros C x y L. apply least_delta_decides; try apply probabilities_around. rewrite delta_of_two.
    eapply Rle_trans; [|exact C]. apply Rle_trans with (apart epsilon (Z.abs (x - y))).
    + destruct (Z.abs_spec (x - y)) as [[_ ->]|[_ ->]]; [apply Rle_refl|rewrite apart_is_even; apply Rle_refl].
    + apply apart_grows. lia.
  - intros C. specialize (C a 0%Z ltac:(lia)). apply least_delta_decides in C; try apply probabilities_around.
    rewrite delta_of_two, Z.sub_0_r in C. exact C.
Qed.

(* A number that is put on i with probability w, else on i + 1, before noise is added. *)
Definition rounded_number (w : R) (i z : Z) : R :=
  w * discrete_gaussian sigma (z - i) + (1 - w) * discrete_gaussian sigma (z - (i + 1)).

Lemma chance_of_number w i event : 0 <= w <= 1 ->
  chance (rounded_number w i) event
  = w * chance (fun z => p (z - i)) event + (1 - w) * chance (fun z => p (z - (i + 1))) event.
Proof.
  intros W. apply is_sum_unique. apply (is_sum_ext (fun z => w * (if event z then p (z - i) else 0)
    + (1 - w) * (if event z then p (z - (i + 1)) else 0))).
  - intros z. unfold rounded_number. fold p. destruct (event z); ring.
  - apply is_sum_plus; try (apply is_sum_scale; [lra|apply chance_is, probabilities_around]);
      intros z; apply Rmult_le_pos; try lra; destruct (event z); try lra; apply probabilities_around.
Qed.

Theorem numbers_are_private epsilon delta u w i v j : (0 < u)%Z -> curve epsilon (2 * u) <= delta ->
  0 <= w <= 1 -> (- u <= i < u)%Z -> 0 <= v <= 1 -> (- u <= j < u)%Z ->
  private epsilon delta (rounded_number w i) (rounded_number v j).
Proof.
  intros U C W I V J event. rewrite !chance_of_number by assumption.
  assert (H : forall x y, (- u <= x <= u)%Z -> (- u <= y <= u)%Z ->
    chance (fun z => p (z - x)) event <= exp epsilon * chance (fun z => p (z - y)) event + delta).
  { intros x y X Y. apply (proj1 (curve_decides epsilon delta (2 * u) ltac:(lia)) C). lia. }
  assert (Mix : forall q c d e, 0 <= q <= 1 -> c <= e -> d <= e -> q * c + (1 - q) * d <= e) by (intros; nra).
  assert (One : forall x, (- u <= x <= u)%Z -> chance (fun z => p (z - x)) event <= exp epsilon *
    (v * chance (fun z => p (z - j)) event + (1 - v) * chance (fun z => p (z - (j + 1))) event) + delta).
  { intros x X. generalize (H x j X ltac:(lia)) (H x (j + 1)%Z X ltac:(lia)).
    generalize (chance (fun z => p (z - x)) event). intros c K L.
    apply Rmult_le_compat_l with (r := v) in K; [|lra]. apply Rmult_le_compat_l with (r := 1 - v) in L; lra. }
  apply Mix; [exact W|apply One; lia|apply One; lia].
Qed.

(* Noise is at least r with a probability of at most exp(-r^2 / (2 sigma^2)), as for continuous noise: with
   exp((k - r) r / sigma^2) for the event the sum is that of a bell around r. *)
Theorem tail_is_small r : 0 <= r ->
  chance (discrete_gaussian sigma) (fun k => if Rle_dec r (IZR k) then true else false)
    <= exp (- (r ^ 2 / (2 * sigma ^ 2))).
Proof.
  intros H. set (t := / (2 * sigma ^ 2)). set (e := exp _).
  assert (T : 0 < t) by apply rate_is_positive, sigma_positive. generalize (theta_is_positive t T). intros P.
  apply (chance_is _ _ (discrete_gaussian_is_a_law sigma sigma_positive)).
  apply (at_most_le _ (fun k => e / theta t 0 * bell t r k));
    [|apply bells_at_most; [exact sigma_positive|apply Rlt_le, exp_pos]].
  intros k. assert (0 < e / theta t 0) by (apply Rdiv_lt_0_compat; [apply exp_pos|exact P]).
  generalize (bell_is_positive t r k). intros B. destruct (Rle_dec r (IZR k)) as [K|K]; [|nra].
  rewrite (discrete_gaussian_is sigma sigma_positive). fold t. unfold Rdiv.
  rewrite (Rmult_comm e), (Rmult_comm (bell _ _ _)), Rmult_assoc.
  apply Rmult_le_compat_l; [apply Rlt_le, Rinv_0_lt_compat, P|]. unfold e, bell. rewrite <- exp_plus. apply Raux.exp_le.
  replace (- (r ^ 2 / (2 * sigma ^ 2))) with (- (t * r ^ 2)) by (unfold t; field; lra).
  assert (0 <= t * (r * (IZR k - r))) by (repeat apply Rmult_le_pos; lra). lra.
Qed.
End Gaussian.
