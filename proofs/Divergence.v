(* Renyi divergences and zero-concentrated differential privacy (Bun and Steinke 2016), for laws on any type of
   outcomes, finite or not: composition, and functions of what is released. *)
From Coq Require Import Reals List Lia Lra Psatz FinFun.
From Flocq Require Import Core.
From Dpnoise Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Definition probabilities {A} (P : A -> R) : Prop := (forall z, 0 <= P z) /\ is_sum P 1.

(* The divergence of order a > 1 is ln(s) / (a - 1) for the sum s of P^a Q^(1 - a), that is of P (P / Q)^(a - 1). *)
Definition renyi_term {A} (a : R) (P Q : A -> R) (z : A) : R := P z * Rpower (P z / Q z) (a - 1).
Definition divergence_at_most {A} (a : R) (P Q : A -> R) (d : R) : Prop :=
  (forall z, 0 < P z -> 0 < Q z) /\ sum_at_most (renyi_term a P Q) (exp ((a - 1) * d)).
Definition zcdp {A} (rho : R) (P Q : A -> R) : Prop :=
  forall a, 1 < a -> divergence_at_most a P Q (a * rho) /\ divergence_at_most a Q P (a * rho).

Theorem zcdp_is_symmetric {A} rho (P Q : A -> R) : zcdp rho P Q -> zcdp rho Q P.
Proof. intros H a O. split; apply (H a O). Qed.

Lemma term_is_nonnegative {A} a (P Q : A -> R) z : 0 <= P z -> 0 <= renyi_term a P Q z.
Proof. intros H. apply Rmult_le_pos; [exact H|apply Rlt_le, exp_pos]. Qed.

Lemma divergence_from_itself {A} a (P : A -> R) : probabilities P -> divergence_at_most a P P 0.
Proof.
  intros [N [S _]]. split; [auto|]. rewrite Rmult_0_r, exp_0. apply (at_most_le _ P); [|exact S]. intros z.
  unfold renyi_term, Rpower. destruct (N z) as [H|<-]; [|lra].
  unfold Rdiv. rewrite Rinv_r, ln_1, Rmult_0_r, exp_0 by lra. lra.
Qed.

(* Two releases, the second one of which may depend on what the first one gave. *)
Definition followed_by {A B} (P : A -> R) (K : A -> B -> R) (p : A * B) : R := P (fst p) * K (fst p) (snd p).

Theorem two_releases_are_a_law {A B} (P : A -> R) (K : A -> B -> R) : probabilities P ->
  (forall x, probabilities (K x)) -> probabilities (followed_by P K).
Proof.
  intros [N S] HK. assert (M : forall p, 0 <= followed_by P K p) by (intros; apply Rmult_le_pos; [apply N|apply HK]).
  split; [exact M|]. apply (is_sum_of_sums _ P); [exact M| |exact S]. intros x. rewrite <- (Rmult_1_r (P x)).
  apply (is_sum_scale (P x) (K x)); [apply N|apply HK].
Qed.

Lemma term_of_two {A B} a (P Q : A -> R) (K L : A -> B -> R) p : (forall x, 0 <= P x) -> (forall x y, 0 <= K x y) ->
  (forall x, 0 < P x -> 0 < Q x) -> (forall x y, 0 < K x y -> 0 < L x y) ->
  renyi_term a (followed_by P K) (followed_by Q L) p
  = renyi_term a P Q (fst p) * renyi_term a (K (fst p)) (L (fst p)) (snd p).
Proof.
  destruct p as [x y]. unfold renyi_term, followed_by, fst, snd. intros HP HK PQ KL.
  destruct (HP x) as [P0|<-]; [|ring]. destruct (HK x y) as [K0|<-]; [|ring].
  specialize (PQ x P0). specialize (KL x y K0).
  replace (P x * K x y / (Q x * L x y)) with (P x / Q x * (K x y / L x y)) by (field; lra).
  rewrite <- Rpower_mult_distr by (apply Rdiv_lt_0_compat; assumption). ring.
Qed.

Theorem divergences_add_up {A B} a (P Q : A -> R) (K L : A -> B -> R) d e :
  (forall x, 0 <= P x) -> (forall x y, 0 <= K x y) ->
  divergence_at_most a P Q d -> (forall x, divergence_at_most a (K x) (L x) e) ->
  divergence_at_most a (followed_by P K) (followed_by Q L) (d + e).
Proof.
  intros HP HK [PQ S] KL. split.
  - intros [x y] H. unfold followed_by, fst, snd in *. specialize (HP x). specialize (HK x y).
    destruct HP as [P0|P0], HK as [K0|K0]; try (rewrite <- P0 in H || rewrite <- K0 in H; lra).
    apply Rmult_lt_0_compat; [apply PQ, P0|apply KL, K0].
  - apply (sums_at_most _ (fun x => exp ((a - 1) * e) * renyi_term a P Q x)).
    + intros p. apply term_is_nonnegative, Rmult_le_pos; auto.
    + intros x. apply (at_most_le _ (fun y => renyi_term a P Q x * renyi_term a (K x) (L x) y)).
      * intros y. rewrite term_of_two; auto; [apply Rle_refl|]. intros z. apply KL.
      * rewrite (Rmult_comm (exp _)). apply at_most_scale; [apply term_is_nonnegative, HP|apply KL].
    + replace (exp ((a - 1) * (d + e))) with (exp ((a - 1) * e) * exp ((a - 1) * d)).
      * apply at_most_scale; [apply Rlt_le, exp_pos|exact S].
      * rewrite <- exp_plus. f_equal. ring.
Qed.

Theorem zcdp_adds_up {A B} (P Q : A -> R) (K L : A -> B -> R) rho sigma :
  (forall x, 0 <= P x) -> (forall x, 0 <= Q x) -> (forall x y, 0 <= K x y) -> (forall x y, 0 <= L x y) ->
  zcdp rho P Q -> (forall x, zcdp sigma (K x) (L x)) -> zcdp (rho + sigma) (followed_by P K) (followed_by Q L).
Proof.
  intros HP HQ HK HL PQ KL a O. rewrite Rmult_plus_distr_l.
  split; apply divergences_add_up; auto; try apply PQ, O; intros x; apply KL, O.
Qed.

(* A function of what is released has the sum of the probabilities of all that lead to its value. *)
Section Functions.
Context {A B : Type}.
Variable same : forall b c : B, {b = c} + {b <> c}.
Variable f : A -> B.
Definition where_it_is (b : B) (P : A -> R) (x : A) : R := if same (f x) b then P x else 0.
Definition image (P : A -> R) (b : B) : R := sum_of (where_it_is b P).

Lemma image_is P s b : (forall x, 0 <= P x) -> sum_at_most P s -> is_sum (where_it_is b P) (image P b).
Proof.
  intros N H. apply (is_sum_of _ s), (at_most_le _ P); [|exact H]. intros x. unfold where_it_is.
  destruct (same (f x) b); [lra|apply N].
Qed.

Lemma images_together P s : (forall x, 0 <= P x) -> sum_at_most P s -> sum_at_most (image P) s.
Proof.
  intros N H. apply (sums_within (fun p => where_it_is (fst p) P (snd p))).
  { intros b. apply (image_is P s b N H). }
  apply (at_most_through (fun p : B * A => (snd p, fst p)) (fun p => where_it_is (snd p) P (fst p))).
  { intros [b x] [c y] E. simpl in E. congruence. }
  apply (sums_at_most _ P); [| |exact H].
  - intros [x b]. unfold where_it_is. simpl. destruct (same (f x) b); [apply N|lra].
  - intros x. replace (P x) with (where_it_is (f x) P x) by (unfold where_it_is; destruct (same _ _); congruence).
    apply (one_term_at_most (fun b => where_it_is b P x)); unfold where_it_is.
    + destruct (same _ _); [apply N|lra].
    + intros b D. destruct (same _ _); [congruence|reflexivity].
Qed.

Lemma images_are_a_sum P s : (forall x, 0 <= P x) -> is_sum P s -> is_sum (image P) s.
Proof.
  intros N [U L]. split; [apply images_together; assumption|]. intros c C. apply L.
  apply (at_most_le _ (fun x => where_it_is (f x) P x)).
  { intros x. unfold where_it_is. destruct (same (f x) (f x)); [lra|contradiction]. }
  apply (at_most_through (fun x => (f x, x)) (fun p => where_it_is (fst p) P (snd p))); [intros x y E; congruence|].
  apply (sums_at_most _ (image P)); [|intros b; apply (image_is P s b N U)|exact C].
  intros [b x]. unfold where_it_is. simpl. destruct (same (f x) b); [apply N|lra].
Qed.

(* The tangent of a convex function, at r. *)
Lemma tangent a v : 1 < a -> 0 < v -> a * v <= Rpower v a + (a - 1).
Proof.
  intros O V. unfold Rpower. set (y := ln v). assert (E : v = exp y) by (unfold y; rewrite exp_ln; lra). rewrite E.
  generalize (exp_ineq1_le ((a - 1) * y)) (exp_ineq1_le (- y)). intros H K.
  assert (X : exp (a * y) = exp y * exp ((a - 1) * y)) by (rewrite <- exp_plus; f_equal; ring).
  assert (Y : exp y * exp (- y) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  apply Rmult_le_compat_l with (r := exp y) in H; [|apply Rlt_le, exp_pos].
  apply Rmult_le_compat_l with (r := (a - 1) * exp y) in K; [|apply Rmult_le_pos; [lra|apply Rlt_le, exp_pos]].
  rewrite (Rmult_assoc _ _ (exp (- y))), Y in K. lra.
Qed.

Lemma tangent_of_term a (P Q : A -> R) r x : 1 < a -> 0 < r -> 0 <= P x -> 0 <= Q x -> (0 < P x -> 0 < Q x) ->
  a * Rpower r (a - 1) * P x <= renyi_term a P Q x + (a - 1) * Rpower r (a - 1) * r * Q x.
Proof.
  intros O R0. unfold renyi_term. intros [P0|<-] HQ PQ.
  - specialize (PQ P0). set (v := P x / Q x / r). assert (V : 0 < v) by (repeat apply Rdiv_lt_0_compat; assumption).
    assert (E : P x / Q x = v * r) by (unfold v; field; lra). assert (F : P x = v * r * Q x) by (unfold v; field; lra).
    rewrite E, <- Rpower_mult_distr, F by assumption. generalize (tangent a v O V) (exp_pos ((a - 1) * ln r)).
    replace a with (1 + (a - 1)) at 2 by ring. rewrite Rpower_plus, Rpower_1 by exact V.
    change (exp ((a - 1) * ln r)) with (Rpower r (a - 1)). set (k := Rpower r (a - 1)). intros T K.
    apply Rmult_le_compat_r with (r := k * (r * Q x)) in T; [lra|]. apply Rlt_le. repeat apply Rmult_lt_0_compat; auto.
  - rewrite Rmult_0_l, Rmult_0_r, Rplus_0_l. generalize (exp_pos ((a - 1) * ln r)). intros K.
    change (exp ((a - 1) * ln r)) with (Rpower r (a - 1)) in K. repeat apply Rmult_le_pos; lra.
Qed.

Theorem divergence_of_a_function a P Q d : 1 < a -> probabilities P -> probabilities Q ->
  divergence_at_most a P Q d -> divergence_at_most a (image P) (image Q) d.
Proof.
  intros O [HP [SP _]] [HQ [SQ _]] [PQ S].
  assert (Positive : forall b, 0 < image P b -> 0 < image Q b).
  { intros b H. apply Rnot_le_lt. intros K. apply (Rlt_not_le _ _ H). apply (image_is P 1 b HP SP). intros xs _.
    induction xs as [|x xs IH]; simpl; [lra|]. enough (where_it_is b P x <= 0) by lra.
    assert (X : where_it_is b Q x + 0 <= image Q b).
    { apply (proj1 (image_is Q 1 b HQ SQ) [x]). repeat constructor. simpl. tauto. }
    unfold where_it_is in *. destruct (same (f x) b); [|lra]. apply Rnot_lt_le. intros L. specialize (PQ x L). lra. }
  split; [exact Positive|].
  assert (HT : forall x, 0 <= renyi_term a P Q x) by (intros; apply term_is_nonnegative, HP).
  apply (at_most_le _ (image (renyi_term a P Q))); [|apply images_together; assumption]. intros b.
  unfold renyi_term at 1.
  assert (N : forall R, (forall x, 0 <= R x) -> sum_at_most R (exp ((a - 1) * d)) -> 0 <= image R b).
  { intros R HR SR. apply (proj1 (image_is R _ b HR SR) [] (NoDup_nil _)). }
  assert (0 <= image P b) as [P0|<-] by apply (proj1 (image_is P 1 b HP SP) [] (NoDup_nil _));
    [|rewrite Rmult_0_l; apply N; assumption].
  specialize (Positive b P0). set (r := image P b / image Q b).
  assert (R0 : 0 < r) by (apply Rdiv_lt_0_compat; assumption). set (k := Rpower r (a - 1)).
  assert (K : 0 < k) by apply exp_pos.
  assert (H : a * k * image P b <= image (renyi_term a P Q) b + (a - 1) * k * r * image Q b).
  { apply (is_sum_scale (a * k) (where_it_is b P)); [nra|apply (image_is P 1); assumption|].
    apply (at_most_le _ (fun x => where_it_is b (renyi_term a P Q) x + (a - 1) * k * r * where_it_is b Q x)).
    - intros x. unfold where_it_is. destruct (same (f x) b); [|lra]. apply tangent_of_term; auto.
    - apply at_most_plus; [apply (image_is _ _ b HT S)|]. apply at_most_scale; [|apply (image_is Q 1 b HQ SQ)].
      apply Rmult_le_pos; [apply Rmult_le_pos|]; lra. }
  replace ((a - 1) * k * r * image Q b) with ((a - 1) * k * image P b) in H by (unfold r; field; lra). lra.
Qed.

Theorem zcdp_of_a_function rho P Q : probabilities P -> probabilities Q -> zcdp rho P Q ->
  zcdp rho (image P) (image Q).
Proof. intros HP HQ H a O. split; apply divergence_of_a_function; auto; apply H, O. Qed.
End Functions.

Lemma divergence_grows {A} a (P Q : A -> R) d e : 1 < a -> d <= e -> divergence_at_most a P Q d ->
  divergence_at_most a P Q e.
Proof.
  intros O L [Z S]. split; [exact Z|]. revert S. apply at_most_grows, Raux.exp_le, Rmult_le_compat_l; lra.
Qed.

Lemma zcdp_grows {A} rho sigma (P Q : A -> R) : rho <= sigma -> zcdp rho P Q -> zcdp sigma P Q.
Proof.
  intros L H a O. assert (a * rho <= a * sigma) by (apply Rmult_le_compat_l; lra).
  split; (apply divergence_grows with (a * rho); [exact O|assumption|apply H, O]).
Qed.

Lemma zcdp_from_itself {A} (P : A -> R) : probabilities P -> zcdp 0 P P.
Proof. intros H a _. rewrite Rmult_0_r. split; apply divergence_from_itself, H. Qed.

(* Any number of releases: their outcomes are a list. *)
Definition nothing {A} (zs : list A) : R := match zs with [] => 1 | _ => 0 end.
Definition after {A} (P : A -> R) (K : A -> list A -> R) (zs : list A) : R :=
  match zs with [] => 0 | z :: zs => P z * K z zs end.

Lemma nothing_is_a_law {A} : probabilities (@nothing A).
Proof.
  split; [intros [|z zs]; simpl; lra|]. rewrite <- (Rplus_0_r 1). apply (is_sum_of_lists nothing), is_sum_of_zeros.
  intros [|z zs]; simpl; lra.
Qed.

Lemma after_is_a_law {A} (P : A -> R) K : probabilities P -> (forall z, probabilities (K z)) ->
  probabilities (after P K).
Proof.
  intros H L. destruct (two_releases_are_a_law P K H L) as [N S].
  assert (M : forall zs, 0 <= after P K zs) by (intros [|z zs]; [apply Rle_refl|apply (N (z, zs))]).
  split; [exact M|]. rewrite <- (Rplus_0_l 1). exact (is_sum_of_lists (after P K) 1 M S).
Qed.

Lemma after_at_most {A} (f : list A -> R) b : f [] = 0 -> (forall zs, 0 <= f zs) ->
  sum_at_most (fun p => f (fst p :: snd p)) b -> sum_at_most f b.
Proof. intros E N H. rewrite <- (Rplus_0_l b), <- E. apply lists_at_most; assumption. Qed.

Lemma sums_after_at_most {A} (f : list A -> R) g b : f [] = 0 -> (forall zs, 0 <= f zs) ->
  (forall z, sum_at_most (fun zs => f (z :: zs)) (g z)) -> sum_at_most g b -> sum_at_most f b.
Proof. intros E N F G. apply after_at_most; [exact E|exact N|]. apply (sums_at_most _ g); auto. Qed.

Lemma divergence_after {A} a (P Q : A -> R) K L d e : (forall z, 0 <= P z) -> (forall z zs, 0 <= K z zs) ->
  divergence_at_most a P Q d -> (forall z, divergence_at_most a (K z) (L z) e) ->
  divergence_at_most a (after P K) (after Q L) (d + e).
Proof.
  intros HP HK PQ KL. destruct (divergences_add_up a P Q K L d e HP HK PQ KL) as [Z S]. split.
  - intros [|z zs] H; [simpl in H; lra|apply (Z (z, zs) H)].
  - apply after_at_most; [unfold renyi_term; simpl; ring| |exact S].
    intros [|z zs]; apply term_is_nonnegative; [apply Rle_refl|apply Rmult_le_pos; [apply HP|apply HK]].
Qed.

Lemma zcdp_after {A} (P Q : A -> R) K L rho sigma : probabilities P -> probabilities Q ->
  (forall z, probabilities (K z)) -> (forall z, probabilities (L z)) ->
  zcdp rho P Q -> (forall z, zcdp sigma (K z) (L z)) -> zcdp (rho + sigma) (after P K) (after Q L).
Proof.
  intros HP HQ HK HL PQ KL a O. rewrite Rmult_plus_distr_l.
  split; apply divergence_after; try apply HP; try apply HQ; try (intros; apply HK || apply HL);
    try apply PQ, O; intros z; apply KL, O.
Qed.

(* Two steps. By Hoelder's inequality a sum of P^a S^(1 - a) = (P^b Q^(1 - b))^t (Q^c S^(1 - c))^(1 - t) is at most a
   product of powers of two sums, with b = a / t and c = (a - t) / (1 - t); this t makes the bound smallest. *)
Lemma exp_is_convex t u v : 0 <= t <= 1 -> exp (t * u + (1 - t) * v) <= t * exp u + (1 - t) * exp v.
Proof.
  intros T. set (m := t * u + (1 - t) * v).
  assert (H : forall x, exp m * (1 + (x - m)) <= exp x).
  { intros x. replace (exp x) with (exp m * exp (x - m)) by (rewrite <- exp_plus; f_equal; ring).
    apply Rmult_le_compat_l; [apply Rlt_le, exp_pos|apply exp_ineq1_le]. }
  apply Rle_trans with (t * (exp m * (1 + (u - m))) + (1 - t) * (exp m * (1 + (v - m)))); [unfold m; lra|].
  apply Rplus_le_compat; apply Rmult_le_compat_l; try apply H; lra.
Qed.

Lemma term_is {A} a (P Q : A -> R) z : 0 < P z -> 0 < Q z ->
  renyi_term a P Q z = exp (a * ln (P z) + (1 - a) * ln (Q z)).
Proof.
  intros HP HQ. unfold renyi_term, Rpower, Rdiv. rewrite ln_mult, ln_Rinv by (try apply Rinv_0_lt_compat; assumption).
  rewrite <- (exp_ln (P z)) at 1 by exact HP. rewrite <- exp_plus. f_equal. ring.
Qed.

Lemma divergence_steps {A} rho i j a (P Q S : A -> R) : 0 < i -> 0 < j -> 1 < a ->
  (forall z, 0 <= P z) -> (forall z, 0 <= Q z) -> (forall b, 1 < b -> divergence_at_most b P Q (b * (rho * i ^ 2))) ->
  (forall c, 1 < c -> divergence_at_most c Q S (c * (rho * j ^ 2))) ->
  divergence_at_most a P S (a * (rho * (i + j) ^ 2)).
Proof.
  intros I J H N M PQ QS.
  assert (W : 0 < a * (i + j) - j) by nra. set (t := a * i / (a * (i + j) - j)).
  assert (T : 0 < t < 1).
  { unfold t. split; [apply Rdiv_lt_0_compat; nra|]. apply (Rmult_lt_reg_r (a * (i + j) - j)); [exact W|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra. }
  set (b := a / t). set (c := (a - t) / (1 - t)).
  assert (Hb : 1 < b) by (apply (Rmult_lt_reg_r t); [lra|]; unfold b, Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra).
  assert (Hc : 1 < c) by (apply (Rmult_lt_reg_r (1 - t)); [lra|]; unfold c, Rdiv; rewrite Rmult_assoc, Rinv_l by lra;
    lra).
  destruct (PQ b Hb) as [Z B]. destruct (QS c Hc) as [Y C]. split; [auto|].
  set (u := (b - 1) * (b * (rho * i ^ 2))) in *. set (v := (c - 1) * (c * (rho * j ^ 2))) in *.
  replace ((a - 1) * (a * (rho * (i + j) ^ 2))) with (t * u + (1 - t) * v)
    by (unfold u, v, b, c, t; field; repeat split; nra).
  set (m := exp (t * u + (1 - t) * v)).
  replace m with (m * t * exp (- u) * exp u + m * (1 - t) * exp (- v) * exp v)
    by (rewrite !exp_Ropp; field; split; apply Rgt_not_eq, exp_pos).
  apply (at_most_le _ (fun z => m * t * exp (- u) * renyi_term b P Q z + m * (1 - t) * exp (- v) * renyi_term c Q S z)).
  - intros z. destruct (N z) as [F|E]; [|unfold renyi_term at 1 2; rewrite <- E, !Rmult_0_l, Rmult_0_r, Rplus_0_l].
    + specialize (Z z F). specialize (Y z Z). rewrite !term_is by assumption.
      set (x := ln (P z)). set (y := ln (Q z)). set (s := ln (S z)).
      replace (m * t * exp (- u) * exp (b * x + (1 - b) * y) + m * (1 - t) * exp (- v) * exp (c * y + (1 - c) * s))
        with (m * (t * exp (b * x + (1 - b) * y - u) + (1 - t) * exp (c * y + (1 - c) * s - v)))
        by (unfold Rminus; rewrite !(exp_plus _ (- u)), !(exp_plus _ (- v)); ring).
      apply Rle_trans with (m * exp (t * (b * x + (1 - b) * y - u) + (1 - t) * (c * y + (1 - c) * s - v)));
        [|apply Rmult_le_compat_l; [apply Rlt_le, exp_pos|apply exp_is_convex; lra]].
      unfold m. rewrite <- exp_plus. right. f_equal. unfold b, c. field. lra.
    + apply Rmult_le_pos; [|apply term_is_nonnegative, M].
      repeat apply Rmult_le_pos; try (apply Rlt_le, exp_pos); lra.
  - clearbody t. apply at_most_plus; (apply at_most_scale; [|assumption]); repeat apply Rmult_le_pos;
      try (apply Rlt_le, exp_pos); lra.
Qed.

Theorem zcdp_steps {A} rho i j (P Q S : A -> R) : 0 < i -> 0 < j -> probabilities P -> probabilities Q ->
  probabilities S -> zcdp (rho * i ^ 2) P Q -> zcdp (rho * j ^ 2) Q S -> zcdp (rho * (i + j) ^ 2) P S.
Proof.
  intros I J [HP _] [HQ _] [HS _] PQ QS a O. split; [|rewrite (Rplus_comm i)]; apply divergence_steps with Q; auto;
    intros b B; (apply PQ || apply QS); exact B.
Qed.
