(* Discrete Gaussian noise is zero-concentrated differentially private: for one integer, for vectors of them, and for
   real values that are put on a grid (Canonne, Kamath and Steinke 2020, proposition 5 and theorem 14). *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz FinFun.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Core.
From Dpnoise Require Import Words Model Sound Mass Sums Exact Alias Theta Divergence Grid.
Import ListNotations.
Open Scope R_scope.

(* The law, and what its probabilities are proportional to. *)
Definition gauss (sigma : R) (n : Z) : R := exp (- (IZR n ^ 2 / (2 * sigma ^ 2))).
Definition discrete_gaussian (sigma : R) (n : Z) : R := gauss sigma n / sum_of (gauss sigma).

(* Independent noise of a law p: the probability that it makes a vector zs of xs. *)
Fixpoint noisy (p : Z -> R) (xs : list Z) : list Z -> R :=
  match xs with [] => nothing | x :: xs => after (fun z => p (z - x)%Z) (fun _ => noisy p xs) end.

Fixpoint squared_distance (xs ys : list Z) : R :=
  match xs, ys with x :: xs, y :: ys => IZR (x - y) ^ 2 + squared_distance xs ys | _, _ => 0 end.

Section Noise.
Variable p : Z -> R.
Hypothesis law : probabilities p.

Lemma noisy_value_is_a_law x : probabilities (fun z => p (z - x)%Z).
Proof.
  split; [intros; apply law|].
  apply (is_sum_through (fun z => (z - x)%Z) (fun z => (z + x)%Z)); [intros; lia|intros; lia|apply law].
Qed.

Theorem noisy_values_are_a_law xs : probabilities (noisy p xs).
Proof.
  induction xs as [|x xs IH]; [apply nothing_is_a_law|]. apply after_is_a_law; [apply noisy_value_is_a_law|auto].
Qed.
End Noise.

Section Gaussian.
Variable sigma : R.
Hypothesis sigma_positive : 0 < sigma.
Let t := / (2 * sigma ^ 2).

Lemma rate_is_positive : 0 < t.
Proof. apply Rinv_0_lt_compat. generalize (pow_lt sigma 2 sigma_positive). lra. Qed.

Lemma gauss_is n : gauss sigma n = bell t 0 n.
Proof. unfold gauss, bell, t. f_equal. field. lra. Qed.

Lemma sum_of_gauss : is_sum (gauss sigma) (theta t 0).
Proof.
  apply (is_sum_ext (bell t 0)); [intros; symmetry; apply gauss_is|]. apply theta_is_a_sum, rate_is_positive.
Qed.

Lemma discrete_gaussian_is n : discrete_gaussian sigma n = bell t 0 n / theta t 0.
Proof. unfold discrete_gaussian. rewrite gauss_is, (is_sum_unique _ _ sum_of_gauss). reflexivity. Qed.

Lemma discrete_gaussian_is_positive n : 0 < discrete_gaussian sigma n.
Proof.
  rewrite discrete_gaussian_is. apply Rdiv_lt_0_compat; [apply exp_pos|apply theta_is_positive, rate_is_positive].
Qed.

Theorem discrete_gaussian_is_a_law : probabilities (discrete_gaussian sigma).
Proof.
  generalize (theta_is_positive t rate_is_positive). intros T.
  split; [intros n; apply Rlt_le, discrete_gaussian_is_positive|].
  replace 1 with (/ theta t 0 * theta t 0) by (apply Rinv_l; lra).
  apply (is_sum_ext (fun n => / theta t 0 * bell t 0 n)); [intros n; rewrite discrete_gaussian_is; apply Rmult_comm|].
  apply is_sum_scale; [apply Rlt_le, Rinv_0_lt_compat, T|apply theta_is_a_sum, rate_is_positive].
Qed.

(* A bell around any number, scaled as the law is. *)
Lemma bells_at_most e c : 0 <= e -> sum_at_most (fun z => e / theta t 0 * bell t c z) e.
Proof.
  intros E. generalize (theta_is_positive t rate_is_positive). intros T.
  intros zs N. rewrite sum_over_scale. apply Rle_trans with (e / theta t 0 * theta t 0).
  - apply Rmult_le_compat_l; [apply Rmult_le_pos; [exact E|apply Rlt_le, Rinv_0_lt_compat, T]|].
    eapply Rle_trans; [apply theta_is_a_sum; [apply rate_is_positive|exact N]|].
    apply theta_is_largest_at_0, rate_is_positive.
  - apply Req_le. field. lra.
Qed.

(* The terms of the divergence of order a between the laws around x and y are a bell around a x - (a - 1) y. *)
Lemma term_is_a_bell a x y z :
  renyi_term a (fun z => discrete_gaussian sigma (z - x)) (fun z => discrete_gaussian sigma (z - y)) z
  = exp ((a - 1) * (a * (IZR (x - y) ^ 2 / (2 * sigma ^ 2)))) / theta t 0 * bell t (a * IZR x - (a - 1) * IZR y) z.
Proof.
  generalize (theta_is_positive t rate_is_positive). intros T. unfold renyi_term, Rpower.
  rewrite !discrete_gaussian_is. replace (bell t 0 (z - x) / theta t 0 / (bell t 0 (z - y) / theta t 0))
    with (exp (t * (IZR (z - y) ^ 2 - IZR (z - x) ^ 2))).
  - rewrite ln_exp. unfold bell, Rdiv. rewrite !(Rmult_assoc _ (/ theta t 0)), !(Rmult_comm (/ theta t 0)).
    rewrite <- !Rmult_assoc, <- !exp_plus. do 2 f_equal. rewrite !minus_IZR. unfold t. field. lra.
  - unfold bell. replace (t * (IZR (z - y) ^ 2 - IZR (z - x) ^ 2))
      with (- (t * (IZR (z - x) - 0) ^ 2) - - (t * (IZR (z - y) - 0) ^ 2)) by ring.
    unfold Rminus at 1. rewrite exp_plus, (exp_Ropp (- _)). field.
    split; apply Rgt_not_eq; [exact T|apply exp_pos].
Qed.

Theorem divergence_of_one_value a x y :
  divergence_at_most a (fun z => discrete_gaussian sigma (z - x)) (fun z => discrete_gaussian sigma (z - y))
    (a * (IZR (x - y) ^ 2 / (2 * sigma ^ 2))).
Proof.
  split; [intros; apply discrete_gaussian_is_positive|].
  eapply at_most_le; [intros z; apply Req_le, term_is_a_bell|]. apply bells_at_most, Rlt_le, exp_pos.
Qed.

(* No smaller rho would do: at order 2 the bell is around an integer, so its sum is known. *)
Theorem rho_is_least rho x y :
  zcdp rho (fun z => discrete_gaussian sigma (z - x)) (fun z => discrete_gaussian sigma (z - y)) ->
  IZR (x - y) ^ 2 <= 2 * rho * sigma ^ 2.
Proof.
  intros H. destruct (H 2 ltac:(lra)) as [[_ S] _]. generalize (theta_is_positive t rate_is_positive). intros T.
  assert (C : 2 * IZR x - (2 - 1) * IZR y = IZR (2 * x - y)) by (rewrite minus_IZR, mult_IZR; ring).
  assert (E : exp ((2 - 1) * (2 * (IZR (x - y) ^ 2 / (2 * sigma ^ 2)))) <= exp ((2 - 1) * (2 * rho))).
  { set (e := exp ((2 - 1) * (2 * (_ / _)))). replace e with (e / theta t 0 * theta t (IZR (2 * x - y))).
    2: { rewrite (theta_at_an_integer t (2 * x - y) rate_is_positive). field. lra. }
    eapply (is_sum_scale (e / theta t 0) (bell t _)).
    - apply Rlt_le, Rdiv_lt_0_compat; [apply exp_pos|exact T].
    - apply theta_is_a_sum, rate_is_positive.
    - rewrite <- C. apply (at_most_le _ _ _ (fun z => Req_le _ _ (eq_sym (term_is_a_bell 2 x y z))) S). }
  generalize (pow_lt sigma 2 sigma_positive). intros V. apply Rnot_lt_le. intros L.
  apply (Rle_not_lt _ _ E), exp_increasing.
  assert (rho < IZR (x - y) ^ 2 / (2 * sigma ^ 2)); [|lra]. apply Rmult_lt_reg_r with (2 * sigma ^ 2); [lra|].
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

Theorem divergence_of_vectors a xs : forall ys, length xs = length ys ->
  divergence_at_most a (noisy (discrete_gaussian sigma) xs) (noisy (discrete_gaussian sigma) ys)
    (a * (squared_distance xs ys / (2 * sigma ^ 2))).
Proof.
  induction xs as [|x xs IH]; intros [|y ys] L; try discriminate.
  - unfold Rdiv. cbn [squared_distance]. rewrite Rmult_0_l, Rmult_0_r. apply divergence_from_itself, nothing_is_a_law.
  - replace (a * (squared_distance (x :: xs) (y :: ys) / (2 * sigma ^ 2))) with (a * (IZR (x - y) ^ 2 / (2 * sigma ^ 2))
      + a * (squared_distance xs ys / (2 * sigma ^ 2))) by (simpl; field; lra).
    injection L as L. apply divergence_after; auto using divergence_of_one_value.
    + intros z. apply discrete_gaussian_is_a_law.
    + intros _. apply (noisy_values_are_a_law _ discrete_gaussian_is_a_law xs).
Qed.

Lemma squared_distance_is_symmetric xs : forall ys, squared_distance xs ys = squared_distance ys xs.
Proof.
  induction xs as [|x xs IH]; intros [|y ys]; simpl; try reflexivity. rewrite IH, !minus_IZR. ring.
Qed.

(* Integers whose sensitivity is at most D in the L2 norm. *)
Theorem discrete_gaussian_is_zcdp rho D xs ys : length xs = length ys -> squared_distance xs ys <= D ^ 2 ->
  D ^ 2 <= 2 * rho * sigma ^ 2 ->
  zcdp rho (noisy (discrete_gaussian sigma) xs) (noisy (discrete_gaussian sigma) ys).
Proof.
  intros L H R a O. assert (E : squared_distance xs ys / (2 * sigma ^ 2) <= rho).
  { generalize (pow_lt sigma 2 sigma_positive). intros S. apply Rmult_le_reg_r with (2 * sigma ^ 2); [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  assert (M : a * (squared_distance xs ys / (2 * sigma ^ 2)) <= a * rho) by (apply Rmult_le_compat_l; lra).
  split; [|rewrite squared_distance_is_symmetric in M]; (eapply divergence_grows; [exact O|exact M|]);
    apply divergence_of_vectors; auto.
Qed.

(* Real values on a grid: what the mechanism takes for their sensitivity, in steps of the grid, the root in integers. *)
Definition steps (g D : R) (count : nat) : Z :=
  (Zceil (D / g) + if (count =? 1)%nat then 0 else Z.sqrt (Z.of_nat count - 1) + 1)%Z.

Lemma root_is_enough n : (0 < n)%nat -> sqrt (INR n) <= IZR (Z.sqrt (Z.of_nat n - 1) + 1).
Proof.
  intros H. generalize (Z.sqrt_spec (Z.of_nat n - 1) ltac:(lia)) (Z.sqrt_nonneg (Z.of_nat n - 1)). intros [_ S] P.
  rewrite <- (sqrt_square (IZR _)), <- mult_IZR by (apply IZR_le; lia). apply sqrt_le_1_alt.
  rewrite INR_IZR_INZ. apply IZR_le. lia.
Qed.

Lemma distance_on_grid g xs : forall ys,
  squared_distance (map (nearest g) xs) (map (nearest g) ys)
  = pairs (fun x y => IZR (nearest g x - nearest g y) * IZR (nearest g x - nearest g y)) xs ys.
Proof.
  unfold pairs. induction xs as [|x xs IH]; intros [|y ys]; simpl; try reflexivity. rewrite IH. ring.
Qed.

Lemma steps_are_enough g D xs ys : 0 < g -> length xs = length ys -> xs <> [] ->
  sqrt (pairs (fun x y => (x - y) * (x - y)) xs ys) <= D ->
  squared_distance (map (nearest g) xs) (map (nearest g) ys) <= IZR (steps g D (length xs)) ^ 2.
Proof.
  intros G L N H. unfold steps. destruct (Nat.eqb_spec (length xs) 1) as [E|E].
  - destruct xs as [|x [|]], ys as [|y [|]]; try discriminate. unfold pairs in H. simpl in H. rewrite Rplus_0_r in H.
    change ((x - y) * (x - y)) with (Rsqr (x - y)) in H. rewrite sqrt_Rsqr_abs in H.
    generalize (distance_of_one g G x y D H). intros K. rewrite Z.add_0_r. cbn [map squared_distance].
    rewrite Rplus_0_r, <- (pow2_abs (IZR (_ - _))), <- abs_IZR. apply pow_incr.
    split; [apply IZR_le, Z.abs_nonneg|apply IZR_le, K].
  - generalize (distance_in_L2 g G xs ys D L N H) (Zceil_ub (D / g))
      (root_is_enough (length xs) ltac:(destruct xs; simpl; [congruence|lia])).
    rewrite distance_on_grid, (plus_IZR (Zceil _)). intros K U V.
    rewrite <- (pow2_sqrt (pairs _ xs ys))
      by apply (squares_are_positive (fun x y => IZR (nearest g x - nearest g y))).
    apply pow_incr. split; [apply sqrt_pos|lra].
Qed.

(* The Gaussian mechanism: sigma is at least a ratio times the steps, with 2 rho ratio^2 >= 1. *)
Theorem gaussian_mechanism_is_zcdp g D rho ratio xs ys : 0 < g -> length xs = length ys -> xs <> [] ->
  sqrt (pairs (fun x y => (x - y) * (x - y)) xs ys) <= D ->
  0 < ratio -> 1 <= 2 * rho * ratio ^ 2 -> ratio * IZR (steps g D (length xs)) <= sigma ->
  zcdp rho (noisy (discrete_gaussian sigma) (map (nearest g) xs))
           (noisy (discrete_gaussian sigma) (map (nearest g) ys)).
Proof.
  intros G L N H R R1 S. apply (discrete_gaussian_is_zcdp rho (IZR (steps g D (length xs)))).
  - rewrite !map_length. exact L.
  - apply steps_are_enough; assumption.
  - assert (P : 0 <= IZR (steps g D (length xs))).
    { assert (0 <= D / g) by (apply Rmult_le_pos; [eapply Rle_trans; [apply sqrt_pos|exact H]|
        apply Rlt_le, Rinv_0_lt_compat, G]).
      assert (0 <= Zceil (D / g))%Z by (apply le_IZR; generalize (Zceil_ub (D / g)); lra).
      apply IZR_le. unfold steps. generalize (Z.sqrt_nonneg (Z.of_nat (length xs) - 1)). destruct (_ =? _)%nat; lia. }
    set (s := IZR (steps g D (length xs))) in *. assert (Q : (ratio * s) ^ 2 <= sigma ^ 2).
    { apply pow_incr. split; [apply Rmult_le_pos; lra|exact S]. }
    rewrite Rpow_mult_distr in Q. generalize (pow2_ge_0 s) (pow_lt ratio 2 R). intros. assert (0 < rho) by nra.
    apply Rle_trans with (2 * rho * (ratio ^ 2 * s ^ 2)); [nra|]. apply Rmult_le_compat_l; lra.
Qed.

(* So is each function of what it gives on the grid, as the doubles that are nearest to it. *)
Theorem gaussian_release_is_zcdp {B} (same : forall b c : B, {b = c} + {b <> c}) (f : list Z -> B) g D rho ratio xs ys :
  0 < g -> length xs = length ys -> xs <> [] -> sqrt (pairs (fun x y => (x - y) * (x - y)) xs ys) <= D ->
  0 < ratio -> 1 <= 2 * rho * ratio ^ 2 -> ratio * IZR (steps g D (length xs)) <= sigma ->
  zcdp rho (image same f (noisy (discrete_gaussian sigma) (map (nearest g) xs)))
           (image same f (noisy (discrete_gaussian sigma) (map (nearest g) ys))).
Proof.
  intros. apply zcdp_of_a_function; try apply noisy_values_are_a_law, discrete_gaussian_is_a_law.
  eapply gaussian_mechanism_is_zcdp; eassumption.
Qed.
End Gaussian.

(* The sum over all integers is that by magnitudes, by which the laws of trials and of digits are stated. *)
Lemma is_sum_by_magnitudes (f : nat -> R) (s : R) : (forall n, 0 <= f n) -> is_series (fun n => f (S n)) s ->
  is_sum (fun x => f (Z.abs_nat x)) (f 0%nat + 2 * s).
Proof.
  intros P H. set (c := fun p : bool * nat => let n := Z.of_nat (S (snd p)) in if fst p then n else (- n)%Z).
  apply (is_sum_of_one_and_rest 0%Z c).
  - intros x. destruct (Z.eq_dec x 0) as [->|N]; [left; reflexivity|right].
    exists ((0 <? x)%Z, Nat.pred (Z.abs_nat x)). unfold c. cbn [fst snd]. destruct (Z.ltb_spec 0 x); lia.
  - intros [[] m] [[] n] E; unfold c in E; cbn [fst snd] in E; try (exfalso; lia); f_equal; lia.
  - intros [[] n]; unfold c; cbn [fst snd]; lia.
  - intros x. apply P.
  - apply (is_sum_ext (fun p => f (S (snd p)))); [intros [[] n]; f_equal; unfold c; cbn [fst snd]; lia|].
    assert (U : is_sum (fun n => f (S n)) s) by (apply is_sum_of_series; [intros; apply P|exact H]).
    replace (2 * s) with (s + s) by ring. apply (is_sum_of_sums _ (fun _ => s)); [intros p; apply P|intros; exact U|].
    apply (is_sum_of_two (fun _ => s)). intros. apply (proj1 U [] (NoDup_nil _)).
Qed.

Section Gaussians.
Variable l : law.
Hypothesis G : gaussian l = true.
Hypothesis N : (1 <= numerator l)%Z.
Hypothesis D : (1 <= denominator l)%Z.
Let s := IZR (numerator l) / IZR (denominator l).

Lemma density_is_gauss x : density l (Z.abs x) = gauss s x.
Proof.
  assert (0 < IZR (numerator l)) by (apply IZR_lt; lia). assert (0 < IZR (denominator l)) by (apply IZR_lt; lia).
  unfold density, gauss, dividend, divisor, s. rewrite G, !Z.pow_2_r, !mult_IZR, abs_IZR.
  replace (Rabs (IZR x) * IZR (denominator l) * (Rabs (IZR x) * IZR (denominator l)))
    with (Rabs (IZR x) ^ 2 * IZR (denominator l) ^ 2) by ring. rewrite pow2_abs. f_equal. field. split; lra.
Qed.

Lemma the_law_is_gaussian (sum : R) x : is_series (fun n => density l (Z.of_nat (S n))) sum ->
  density l (Z.abs x) / (density l 0 + 2 * sum) = discrete_gaussian s x.
Proof.
  intros H. unfold discrete_gaussian. rewrite density_is_gauss. f_equal. symmetry. apply is_sum_unique.
  apply (is_sum_ext (fun x => density l (Z.of_nat (Z.abs_nat x)))).
  - intros z. rewrite Zabs2Nat.id_abs. apply density_is_gauss.
  - apply (is_sum_by_magnitudes (fun n => density l (Z.of_nat n))); [intros; apply Rlt_le, exp_pos|exact H].
Qed.
End Gaussians.

(* What trials with sound tables draw is a discrete Gaussian variable. *)
Theorem trials_draw_discrete_gaussians l t : sound l t = true -> gaussian l = true -> two_sided l = true -> forall n,
  density l (Z.abs n) / total l t = discrete_gaussian (IZR (numerator l) / IZR (denominator l)) n.
Proof.
  intros S G T n. generalize (sound_facts l t S). intros facts. assert (Two : signs t <> One).
  { intros E. unfold sound, sound_integers in S. rewrite E, T in S. cbn [negb] in S. rewrite andb_false_r in S.
    discriminate. }
  assert (M : forall k, mass l t k = (if (k =? 0)%nat then 1 else 2) * density l (Z.of_nat k))
    by (intros; unfold mass; destruct (signs t); congruence).
  replace (total l t) with (density l 0 + 2 * ((total l t - density l 0) / 2)) by field.
  apply the_law_is_gaussian; [exact G|apply (numerator_positive _ _ facts)|apply (denominator_positive _ _ facts)|].
  apply (is_series_ext (fun k => / 2 * mass l t (Datatypes.S k))); [intros k; rewrite M; simpl; field|].
  replace ((total l t - density l 0) / 2) with (/ 2 * (total l t - density l 0)) by field.
  apply (is_series_scal (/ 2) (fun k => mass l t (Datatypes.S k))), is_series_incr_1.
  replace (plus _ _) with (total l t) by (rewrite M; unfold plus; simpl; ring). apply total_is_the_sum, S.
Qed.

(* And so are entries of digits. *)
Theorem entries_are_discrete_gaussians l : gaussian l = true -> (1 <= numerator l)%Z -> (1 <= denominator l)%Z ->
  forall n, density l (Z.abs n) / whole_sum l = discrete_gaussian (IZR (numerator l) / IZR (denominator l)) n.
Proof.
  intros G N D n. unfold whole_sum. replace 1 with (density l 0)
    by (unfold density, dividend; rewrite G; simpl; unfold Rdiv; rewrite Rmult_0_l, Ropp_0, exp_0; reflexivity).
  apply the_law_is_gaussian; [exact G|exact N|exact D|].
  apply (is_series_ext (Alias.after l 0)); [intros k; unfold Alias.after; f_equal; lia|].
  apply Series_correct, (ex_series_incr_n (Alias.after l 0) 62), (it_converges l G N D).
Qed.
