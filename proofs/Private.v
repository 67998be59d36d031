(* Privacy with an epsilon and a delta, for laws on any type of outcomes: the least delta, functions of what is
   released, several steps and compositions; and privacy losses in an interval. *)
From Coq Require Import Reals List Bool Lra Psatz FunctionalExtensionality.
From Flocq Require Import Core.
From Dpnoise Require Import Sums Divergence.
Import ListNotations.
Open Scope R_scope.

(* The probability of an event, and privacy as it is defined: for all events, so for those that are asked of a function
   of the outcome as well. *)
Definition chance {A} (P : A -> R) (event : A -> bool) : R := sum_of (fun z => if event z then P z else 0).
Definition private {A} (epsilon delta : R) (P Q : A -> R) : Prop :=
  forall event, chance P event <= exp epsilon * chance Q event + delta.

(* The least delta is the sum of what P has more than e^epsilon times Q. *)
Definition more {A} (epsilon : R) (P Q : A -> R) (z : A) : R := Rmax 0 (P z - exp epsilon * Q z).
Definition least_delta {A} (epsilon : R) (P Q : A -> R) : R := sum_of (more epsilon P Q).

Lemma more_is_nonnegative {A} epsilon (P Q : A -> R) z : 0 <= more epsilon P Q z.
Proof. apply Rmax_l. Qed.

Lemma chance_is {A} (P : A -> R) (event : A -> bool) : probabilities P ->
  is_sum (fun z => if event z then P z else 0) (chance P event).
Proof.
  intros [N [U _]]. apply (is_sum_of _ 1), (at_most_le _ P); [|exact U]. intros z. generalize (N z).
  destruct (event z); lra.
Qed.

Lemma least_delta_is {A} epsilon (P Q : A -> R) : probabilities P -> probabilities Q ->
  is_sum (more epsilon P Q) (least_delta epsilon P Q).
Proof.
  intros [N [U _]] [M _]. apply (is_sum_of _ 1), (at_most_le _ P); [|exact U]. intros z.
  apply Rmax_lub; [apply N|]. generalize (exp_pos epsilon) (M z). nra.
Qed.

(* It is reached by the event that P has more. *)
Lemma worst_event {A} epsilon (P Q : A -> R) (event : A -> bool) : probabilities P -> probabilities Q ->
  (forall z, if event z then exp epsilon * Q z <= P z else P z <= exp epsilon * Q z) ->
  least_delta epsilon P Q = chance P event - exp epsilon * chance Q event.
Proof.
  intros HP HQ H. generalize (exp_pos epsilon). intros E.
  assert (S : chance P event = least_delta epsilon P Q + exp epsilon * chance Q event); [|lra].
  apply is_sum_unique, (is_sum_ext (fun z => more epsilon P Q z + exp epsilon * (if event z then Q z else 0))).
  - intros z. specialize (H z). unfold more. destruct (event z); [rewrite Rmax_right|rewrite Rmax_left]; lra.
  - apply is_sum_plus; [apply more_is_nonnegative| |apply least_delta_is; assumption|].
    2: { apply is_sum_scale; [lra|apply chance_is, HQ]. }
    intros z. generalize (proj1 HQ z). destruct (event z); nra.
Qed.

Theorem least_delta_decides {A} epsilon delta (P Q : A -> R) : probabilities P -> probabilities Q ->
  private epsilon delta P Q <-> least_delta epsilon P Q <= delta.
Proof.
  intros HP HQ. generalize (least_delta_is epsilon P Q HP HQ) (exp_pos epsilon). intros L E. split.
  - intros H. set (event := fun z => if Rlt_dec (exp epsilon * Q z) (P z) then true else false). specialize (H event).
    rewrite (worst_event epsilon P Q event HP HQ); [lra|]. intros z. unfold event. destruct (Rlt_dec _ _); lra.
  - intros H event. apply Rle_trans with (exp epsilon * chance Q event + least_delta epsilon P Q); [|lra].
    apply (chance_is P event HP).
    apply (at_most_le _ (fun z => exp epsilon * (if event z then Q z else 0) + more epsilon P Q z)).
    + intros z. unfold more. generalize (Rmax_r 0 (P z - exp epsilon * Q z)) (Rmax_l 0 (P z - exp epsilon * Q z)).
      destruct (event z); lra.
    + apply at_most_plus; [|apply L]. apply at_most_scale; [lra|]. apply (chance_is Q event HQ).
Qed.

(* What P has more than e^epsilon Q is below the terms of a divergence, by a tangent that is a multiple of it. *)
Lemma more_is_below_terms {A} a epsilon (P Q : A -> R) z : 1 < a -> 0 <= P z -> 0 <= Q z -> (0 < P z -> 0 < Q z) ->
  more epsilon P Q z <= exp (- ((a - 1) * epsilon)) * Rpower (1 - 1 / a) (a - 1) / a * renyi_term a P Q z.
Proof.
  intros O HP HQ PQ.
  assert (V : 0 < 1 - 1 / a) by (replace (1 - 1 / a) with ((a - 1) / a) by (field; lra); apply Rdiv_lt_0_compat; lra).
  set (r := exp (epsilon - ln (1 - 1 / a))). set (k := Rpower r (a - 1)). assert (K : 0 < k) by apply exp_pos.
  assert (U : (a - 1) * r = a * exp epsilon).
  { unfold r, Rminus at 2. rewrite exp_plus, exp_Ropp, exp_ln by exact V. field. lra. }
  replace (exp (- ((a - 1) * epsilon)) * Rpower (1 - 1 / a) (a - 1) / a) with (/ (a * k)).
  - assert (N : 0 < a * k) by nra. apply Rmax_lub.
    { apply Rmult_le_pos; [apply Rlt_le, Rinv_0_lt_compat, N|apply term_is_nonnegative, HP]. }
    apply Rmult_le_reg_l with (a * k); [exact N|]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
    generalize (tangent_of_term a P Q r z O (exp_pos _) HP HQ PQ). fold k.
    replace ((a - 1) * k * r * Q z) with (k * ((a - 1) * r) * Q z) by ring. rewrite U. lra.
  - unfold k, Rpower, r. rewrite ln_exp.
    replace ((a - 1) * (epsilon - ln (1 - 1 / a))) with ((a - 1) * epsilon + - ((a - 1) * ln (1 - 1 / a))) by ring.
    rewrite exp_plus, !exp_Ropp. field. repeat split; try lra; apply Rgt_not_eq, exp_pos.
Qed.

(* So a divergence has a delta (Canonne, Kamath and Steinke 2020, corollary 13). *)
Theorem divergence_is_private {A} a epsilon d (P Q : A -> R) : probabilities P -> probabilities Q -> 1 < a ->
  divergence_at_most a P Q d ->
  private epsilon (exp ((a - 1) * (d - epsilon)) * Rpower (1 - 1 / a) a / (a - 1)) P Q.
Proof.
  intros HP HQ O [PQ S]. apply least_delta_decides; [exact HP|exact HQ|].
  assert (V : 0 < 1 - 1 / a) by (replace (1 - 1 / a) with ((a - 1) / a) by (field; lra); apply Rdiv_lt_0_compat; lra).
  set (c := exp (- ((a - 1) * epsilon)) * Rpower (1 - 1 / a) (a - 1) / a).
  apply Rle_trans with (c * exp ((a - 1) * d)); [apply (least_delta_is epsilon P Q HP HQ)|apply Req_le].
  - apply (at_most_le _ (fun z => c * renyi_term a P Q z)).
    + intros z. apply more_is_below_terms; [exact O|apply HP|apply HQ|apply PQ].
    + apply at_most_scale; [|exact S]. repeat apply Rmult_le_pos; try (apply Rlt_le, exp_pos).
      apply Rlt_le, Rinv_0_lt_compat. lra.
  - replace (Rpower (1 - 1 / a) a) with ((1 - 1 / a) * Rpower (1 - 1 / a) (a - 1)).
    2: { rewrite <- (Rpower_1 (1 - 1 / a)) at 1 by exact V. rewrite <- Rpower_plus. f_equal. ring. }
    unfold c. replace ((a - 1) * (d - epsilon)) with ((a - 1) * d + - ((a - 1) * epsilon)) by ring.
    rewrite exp_plus. field. split; lra.
Qed.

(* That of a negative epsilon is one of a positive epsilon, the other way round. *)
Lemma delta_of_the_other_way {A} epsilon (P Q : A -> R) : probabilities P -> probabilities Q ->
  least_delta (- epsilon) P Q + exp (- epsilon) = 1 + exp (- epsilon) * least_delta epsilon Q P.
Proof.
  intros HP HQ. generalize (exp_pos (- epsilon)). intros E.
  assert (I : exp (- epsilon) * exp epsilon = 1) by (rewrite <- exp_plus, Rplus_opp_l; apply exp_0).
  rewrite <- (Rmult_1_r (exp (- epsilon))) at 1.
  rewrite <- (is_sum_unique (fun z => more (- epsilon) P Q z + exp (- epsilon) * Q z) (_ + _)).
  - apply is_sum_unique, (is_sum_ext (fun z => P z + exp (- epsilon) * more epsilon Q P z)).
    + intros z. unfold more, Rmax.
      assert (exp (- epsilon) * (Q z - exp epsilon * P z) = - (P z - exp (- epsilon) * Q z)).
      { rewrite Rmult_minus_distr_l, <- Rmult_assoc, I. ring. }
      destruct (Rle_dec _ _), (Rle_dec _ _); apply Rle_antisym; nra.
    + apply is_sum_plus; [apply HP| |apply HP|apply is_sum_scale; [lra|apply least_delta_is; assumption]].
      intros z. apply Rmult_le_pos; [lra|apply more_is_nonnegative].
  - apply is_sum_plus; [apply more_is_nonnegative| |apply least_delta_is; assumption|].
    2: { apply is_sum_scale; [lra|apply HQ]. }
    intros z. apply Rmult_le_pos; [lra|apply HQ].
Qed.

Lemma private_is {A} e d (P Q : A -> R) : probabilities P -> probabilities Q ->
  private e d P Q <-> sum_at_most (more e P Q) d.
Proof.
  intros HP HQ. rewrite least_delta_decides by assumption. destruct (least_delta_is e P Q HP HQ) as [U L].
  split; intros H; [exact (at_most_grows _ _ _ H U)|apply L, H].
Qed.

Lemma pointwise_is_private {A} e (P Q : A -> R) : probabilities P -> probabilities Q ->
  (forall z, P z <= exp e * Q z) -> private e 0 P Q.
Proof.
  intros HP HQ H. apply private_is; [exact HP|exact HQ|]. apply (at_most_le _ (fun _ => 0)); [|apply is_sum_of_zeros].
  intros z. unfold more. rewrite Rmax_left; [lra|]. specialize (H z). lra.
Qed.

Lemma chance_range {A} (P : A -> R) event : probabilities P -> 0 <= chance P event <= 1.
Proof.
  intros H. split; [apply (proj1 (chance_is P event H) [] (NoDup_nil _))|]. apply (chance_is P event H).
  apply (at_most_le _ P); [|apply H]. intros z. generalize (proj1 H z). destruct (event z); lra.
Qed.

Lemma private_grows {A} e1 e2 d1 d2 (P Q : A -> R) : probabilities Q -> e1 <= e2 -> d1 <= d2 ->
  private e1 d1 P Q -> private e2 d2 P Q.
Proof.
  intros HQ E D H event. specialize (H event). apply Raux.exp_le in E. generalize (chance_range Q event HQ). nra.
Qed.

Lemma private_from_itself {A} (P : A -> R) : private 0 0 P P.
Proof. intros event. rewrite exp_0. lra. Qed.

Lemma private_steps {A} e1 e2 d1 d2 (P Q S : A -> R) : private e1 d1 P Q -> private e2 d2 Q S ->
  private (e1 + e2) (d1 + exp e1 * d2) P S.
Proof.
  intros H K event. specialize (H event). specialize (K event). rewrite exp_plus. generalize (exp_pos e1). nra.
Qed.

Theorem privacy_adds_up {A B} e1 e2 d1 d2 (P Q : A -> R) (K L : A -> B -> R) : probabilities P -> probabilities Q ->
  (forall x, probabilities (K x)) -> (forall x, probabilities (L x)) -> 0 <= d2 ->
  private e1 d1 P Q -> (forall x, private e2 d2 (K x) (L x)) ->
  private (e1 + e2) (d1 + d2) (followed_by P K) (followed_by Q L).
Proof.
  intros HP HQ HK HL D PQ KL. apply private_is; try apply two_releases_are_a_law; auto.
  apply private_is in PQ; [|assumption|assumption].
  apply (at_most_le _ (fun p => more e1 P Q (fst p) * K (fst p) (snd p)
    + P (fst p) * more e2 (K (fst p)) (L (fst p)) (snd p))).
  - intros [x y]. unfold followed_by, more, fst, snd. rewrite exp_plus.
    generalize (Rmax_l 0 (P x - exp e1 * Q x)) (Rmax_r 0 (P x - exp e1 * Q x)).
    generalize (Rmax_l 0 (K x y - exp e2 * L x y)) (Rmax_r 0 (K x y - exp e2 * L x y)).
    generalize (exp_pos e1) (exp_pos e2) (proj1 HP x) (proj1 HQ x) (proj1 (HK x) y) (proj1 (HL x) y).
    generalize (Rmax 0 (P x - exp e1 * Q x)) (Rmax 0 (K x y - exp e2 * L x y)).
    intros m n E1 E2 Px Qx Kx Lx N0 N M0 M. apply Rmax_lub.
    + apply Rplus_le_le_0_compat; apply Rmult_le_pos; assumption.
    + destruct (Rle_lt_dec (exp e2 * L x y) (K x y)) as [C|C].
      * apply Rmult_le_compat_l with (r := P x) in N; [|exact Px].
        apply Rmult_le_compat_r with (r := exp e2 * L x y) in M; [|apply Rmult_le_pos; lra].
        apply Rmult_le_compat_l with (r := m) in C; [|exact M0]. lra.
      * apply Rmult_le_compat_r with (r := K x y) in M; [|exact Kx].
        assert (exp e1 * Q x * K x y <= exp e1 * Q x * (exp e2 * L x y))
          by (apply Rmult_le_compat_l; [apply Rmult_le_pos|]; lra).
        assert (0 <= P x * n) by (apply Rmult_le_pos; assumption). lra.
  - apply at_most_plus.
    + apply (sums_at_most _ (more e1 P Q)); [| |exact PQ].
      * intros p. apply Rmult_le_pos; [apply more_is_nonnegative|apply HK].
      * intros x. rewrite <- (Rmult_1_r (more e1 P Q x)).
        apply (at_most_scale (more e1 P Q x) (K x)); [apply more_is_nonnegative|apply HK].
    + apply (sums_at_most _ (fun x => d2 * P x)).
      * intros p. apply Rmult_le_pos; [apply HP|apply more_is_nonnegative].
      * intros x. rewrite Rmult_comm. apply (at_most_scale (P x) (more e2 (K x) (L x))); [apply HP|].
        apply private_is; auto.
      * generalize (at_most_scale d2 P 1 D (proj1 (proj2 HP))). rewrite Rmult_1_r. auto.
Qed.

Lemma private_after {A} e1 e2 d1 d2 (P Q : A -> R) K L : probabilities P -> probabilities Q ->
  (forall z, probabilities (K z)) -> (forall z, probabilities (L z)) -> 0 <= d2 ->
  private e1 d1 P Q -> (forall z, private e2 d2 (K z) (L z)) -> private (e1 + e2) (d1 + d2) (after P K) (after Q L).
Proof.
  intros HP HQ HK HL D PQ KL. apply private_is; try apply after_is_a_law; auto.
  generalize (privacy_adds_up e1 e2 d1 d2 P Q K L HP HQ HK HL D PQ KL). intros H.
  apply private_is in H; [|apply two_releases_are_a_law; assumption|apply two_releases_are_a_law; assumption].
  apply after_at_most; [|intros; apply more_is_nonnegative|exact H].
  unfold more. simpl. rewrite Rmult_0_r, Rminus_0_r. apply Rmax_left, Rle_refl.
Qed.

(* An event of a function's value is one of what is released. *)
Theorem private_of_a_function {A B} (same : forall b c : B, {b = c} + {b <> c}) (f : A -> B) e d (P Q : A -> R) :
  probabilities P -> probabilities Q -> private e d P Q -> private e d (image same f P) (image same f Q).
Proof.
  intros HP HQ H event.
  assert (E : forall S, probabilities S -> chance (image same f S) event = chance S (fun x => event (f x))).
  { intros S HS. apply is_sum_unique. generalize (chance_is S (fun x => event (f x)) HS). intros C.
    apply (images_are_a_sum same f) in C; [|intros x; generalize (proj1 HS x); destruct (event (f x)); lra].
    revert C. apply is_sum_ext. intros b. destruct (event b) eqn:V; [unfold image; f_equal|apply is_sum_unique,
      (is_sum_ext (fun _ => 0)); [|apply is_sum_of_zeros]]; try (apply functional_extensionality); intros x;
      unfold where_it_is; destruct (same (f x) b) as [<-|_]; try rewrite V; reflexivity. }
  rewrite !E by assumption. apply H.
Qed.

(* The privacy loss is in an interval of length eta. *)
Definition in_range {A} (eta : R) (P Q : A -> R) : Prop :=
  exists c, forall z, exp c * Q z <= P z <= exp (c + eta) * Q z.

Lemma range_from_itself {A} (P : A -> R) : in_range 0 P P.
Proof. exists 0. intros z. rewrite Rplus_0_l, exp_0. lra. Qed.

Lemma ranges_add {A} e1 e2 (P Q S : A -> R) : in_range e1 P Q -> in_range e2 Q S -> in_range (e1 + e2) P S.
Proof.
  intros [c H] [d K]. exists (c + d). intros z. destruct (H z) as [H1 H2]. destruct (K z) as [K1 K2].
  replace (c + d + (e1 + e2)) with ((c + e1) + (d + e2)) by ring. rewrite !(exp_plus c d), (exp_plus (c + e1)).
  apply Rmult_le_compat_l with (r := exp c) in K1; [|apply Rlt_le, exp_pos].
  apply Rmult_le_compat_l with (r := exp (c + e1)) in K2; [|apply Rlt_le, exp_pos]. lra.
Qed.

Lemma range_after {A} e1 e2 (P Q : A -> R) K L : (forall z, 0 <= Q z) -> (forall zs, 0 <= L zs) ->
  in_range e1 P Q -> in_range e2 K L -> in_range (e1 + e2) (after P (fun _ => K)) (after Q (fun _ => L)).
Proof.
  intros HQ HL [c H] [d M]. exists (c + d). intros [|z zs]; simpl; [lra|].
  replace (c + d + (e1 + e2)) with ((c + e1) + (d + e2)) by ring. rewrite (exp_plus c d), (exp_plus (c + e1)).
  specialize (H z). specialize (M zs). specialize (HQ z). specialize (HL zs).
  assert (0 <= exp c * Q z) by (apply Rmult_le_pos; [apply Rlt_le, exp_pos|exact HQ]).
  assert (0 <= exp d * L zs) by (apply Rmult_le_pos; [apply Rlt_le, exp_pos|exact HL]). split.
  - replace (exp c * exp d * (Q z * L zs)) with ((exp c * Q z) * (exp d * L zs)) by ring.
    apply Rmult_le_compat; lra.
  - replace (exp (c + e1) * exp (d + e2) * (Q z * L zs)) with ((exp (c + e1) * Q z) * (exp (d + e2) * L zs)) by ring.
    apply Rmult_le_compat; lra.
Qed.

Lemma range_is_symmetric {A} eta (P Q : A -> R) : in_range eta P Q -> in_range eta Q P.
Proof.
  intros [c H]. exists (- (c + eta)). intros z. destruct (H z) as [L U].
  apply Rmult_le_compat_l with (r := exp (- (c + eta))) in U; [|apply Rlt_le, exp_pos].
  apply Rmult_le_compat_l with (r := exp (- (c + eta) + eta)) in L; [|apply Rlt_le, exp_pos].
  rewrite <- Rmult_assoc, <- exp_plus in L, U. replace (- (c + eta) + (c + eta)) with 0 in U by ring.
  replace (- (c + eta) + eta + c) with 0 in L by ring. rewrite exp_0, Rmult_1_l in L, U. split; assumption.
Qed.

(* It begins at 0 at most: sums of probabilities are 1. *)
Lemma range_is_private {A} eta (P Q : A -> R) : probabilities P -> probabilities Q -> in_range eta P Q ->
  private eta 0 P Q.
Proof.
  intros HP HQ [c H]. apply pointwise_is_private; [exact HP|exact HQ|]. assert (C : exp c <= 1).
  { rewrite <- (Rmult_1_r (exp c)). apply (is_sum_scale (exp c) Q); [apply Rlt_le, exp_pos|apply HQ|].
    apply (at_most_le _ P); [apply H|apply HP]. }
  intros z. eapply Rle_trans; [apply H|]. apply Rmult_le_compat_r; [apply HQ|]. rewrite exp_plus.
  generalize (exp_pos eta). nra.
Qed.
