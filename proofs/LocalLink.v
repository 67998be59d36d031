(* What the specifications of local protocols claim is proved of what they describe; comparisons with logarithms are
   those that the model makes. *)
From Coq Require Import Reals ZArith List Bool Lia.
From Flocq Require Import Core Binary Bits.
From Interval Require Import Tactic.
From Dpnoise Require Import Words Integers Fixed Tables Local Logarithm.
From Dpnoise.generated Require Import Decisions Specifications.
Import ListNotations.
Open Scope Z_scope.

(* The precisions of log.rs, one after the other. *)
Definition precisions := [constants3; constants6].

Theorem precisions_are_sound : sound_precisions precisions.
Proof.
  unfold sound_precisions, precisions.
  repeat (apply List.Forall_cons; [split; [|cbn [constants3 constants6 limbs]; lia]|]); [..|apply List.Forall_nil].
  - decide_constants constants3 250%positive.
  - decide_constants constants6 450%positive.
Qed.

(* A fraction and a double; whether the logarithm of the one is at most the other. *)
Definition logarithm_agrees (row : Z * Z * Z * bool) : bool :=
  let '(n, d, x, answer) := row in
  match ln_at_most precisions n d (b64_of_bits x) with Some answer' => Bool.eqb answer answer' | None => false end.

Theorem logarithms_agree : forallb logarithm_agrees logarithms = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

(* By its specification a report is private at an epsilon: of one bit, or of a row for two answers or more. *)
Definition flip_is_private (f : bit_flip) (one_bit : bool) (epsilon : R) : Prop :=
  if one_bit then forall x y reports,
    (probability f 1 (Z.b2z x) reports <= exp epsilon * probability f 1 (Z.b2z y) reports)%R
  else forall k x y reports, (2 <= k)%nat -> possible k x -> possible k y ->
    (probability f k (encode x) reports <= exp epsilon * probability f k (encode y) reports)%R.
Definition mixture_is_private (k planes keep : Z) (epsilon : R) : Prop := forall further x y reports,
  0 <= x < k -> 0 <= y < k ->
  (mixed k planes keep further x reports <= exp epsilon * mixed k planes keep further y reports)%R.

(* What is claimed of a fraction: what is achieved is the least double that is enough, and the epsilon is enough. *)
Definition claims_agree (fraction : Z * Z) (epsilon achieved : Z) : bool :=
  let '(n, d) := fraction in
  (0 <? n) && (0 <? d) && is_least n d (b64_of_bits achieved) && is_finite 53 1024 (b64_of_bits epsilon)
  && match Bcompare 53 1024 (b64_of_bits achieved) (b64_of_bits epsilon) with Some (Lt | Eq) => true | _ => false end.
Definition claims_hold (is_private : R -> Prop) (epsilon achieved : Z) : Prop :=
  is_private (double (b64_of_bits epsilon)) /\
  forall x, is_double x -> is_private x <-> (double (b64_of_bits achieved) <= x)%R.
Definition same (fraction claimed : Z * Z) : bool := (fst fraction =? fst claimed) && (snd fraction =? snd claimed).

Lemma same_is fraction claimed : same fraction claimed = true -> fraction = claimed.
Proof.
  unfold same. rewrite andb_true_iff, !Z.eqb_eq. destruct fraction, claimed. simpl. intros [-> ->]. reflexivity.
Qed.

Lemma claims_are_right is_private fraction epsilon achieved :
  (forall x, is_private x <-> (ln (quotient fraction) <= x)%R) -> claims_agree fraction epsilon achieved = true ->
  claims_hold is_private epsilon achieved.
Proof.
  destruct fraction as [n d]. unfold claims_agree. intros H. rewrite !andb_true_iff, !Z.ltb_lt.
  intros [[[[N D] Least] Finite] More].
  assert (All : forall x, is_double x -> is_private x <-> (double (b64_of_bits achieved) <= x)%R)
    by (intros x X; rewrite H; apply is_least_is_right; assumption).
  split; [|exact All]. apply All; [apply generic_format_B2R|]. unfold is_least in Least.
  rewrite !andb_true_iff in Least. destruct Least as [[[F _] _] _].
  rewrite Bcompare_correct in More by (exact Finite || (destruct (b64_of_bits achieved); easy)).
  unfold double. destruct (Rcompare_spec (B2R 53 1024 (b64_of_bits achieved)) (B2R 53 1024 (b64_of_bits epsilon)));
    [apply Rlt_le; assumption|right; assumption|discriminate].
Qed.

Definition flip_agrees (row : bit_flip * bool * (Z * Z) * Z * Z) : bool :=
  let '(f, one_bit, fraction, epsilon, achieved) := row in
  (0 <? q f) && (q f <? p f) && (p f <? 2^ planes f) && same (likelihood f one_bit) fraction
  && claims_agree fraction epsilon achieved.

Theorem flips_agree : forallb flip_agrees flips = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Theorem specified_flips_are_private f one_bit fraction epsilon achieved :
  In (f, one_bit, fraction, epsilon, achieved) flips ->
  valid f /\ likelihood f one_bit = fraction /\ claims_hold (flip_is_private f one_bit) epsilon achieved.
Proof.
  intros I. assert (A := proj1 (forallb_forall _ _) flips_agree _ I). unfold flip_agrees in A.
  rewrite !andb_true_iff, !Z.ltb_lt in A. destruct A as [[[[Q P] N] S] A]. apply same_is in S. subst fraction.
  assert (V : valid f) by (unfold valid; lia). split; [exact V|]. split; [reflexivity|].
  apply (claims_are_right _ _ _ _) with (2 := A). intros x. destruct one_bit; unfold flip_is_private.
  - apply randomized_response_is_private, V.
  - split.
    + intros H. apply (unary_encoding_is_private f V 2); [lia|]. intros. apply H; [lia|assumption..].
    + intros H k a b reports K. revert a b reports. apply (unary_encoding_is_private f V k x K). exact H.
Qed.

Definition mixture_agrees (row : Z * Z * Z * (Z * Z) * Z * Z) : bool :=
  let '(k, planes, keep, fraction, epsilon, achieved) := row in
  (2 <=? k) && (k <=? 2 ^ 32) && (0 <=? planes) && (planes <=? 64) && (0 <? keep) && (keep <? 2 ^ planes)
  && same (mixture_likelihood k planes keep) fraction && claims_agree fraction epsilon achieved.

Theorem mixtures_agree : forallb mixture_agrees mixtures = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Theorem specified_mixtures_are_private k planes keep fraction epsilon achieved :
  In (k, planes, keep, fraction, epsilon, achieved) mixtures ->
  mixture_likelihood k planes keep = fraction /\ claims_hold (mixture_is_private k planes keep) epsilon achieved.
Proof.
  intros I. assert (A := proj1 (forallb_forall _ _) mixtures_agree _ I). unfold mixture_agrees in A.
  rewrite !andb_true_iff, !Z.ltb_lt, !Z.leb_le in A. destruct A as [[[[[[[K K'] P] P'] H] H'] S] A].
  apply same_is in S. subst fraction. split; [reflexivity|]. apply (claims_are_right _ _ _ _) with (2 := A).
  intros x. apply Local.mixture_is_private; lia.
Qed.

From Coq Require Import String.
Definition counts := [("logarithms", List.length logarithms); ("specified flips", List.length flips);
  ("specified mixtures", List.length mixtures)]%string.
