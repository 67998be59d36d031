(* A digit from its words and, where they choose entry 63, from what that stands for: every entry has its probability.
   *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Dpnoise Require Import Decide Fixed Model Words Sound Values Integers Programs Tail Rest Alias Entries.
Import ListNotations.
Open Scope R_scope.
(* Means over 56 and 64 bits are not to be computed. *)
Local Opaque mean.

Section Digit.
Variables (l : law) (d : digit) (last : bool).
Hypothesis Numerator : (1 <= numerator l)%Z.
Hypothesis Denominator : (1 <= denominator l)%Z.
Hypothesis Step : (1 <= step d)%Z.
Hypothesis S : sound_digit l d last = true.
Hypothesis Rest : sound_rest l d last = true.
Notation T := (at_least l d last).
Notation lacks := (lacking l d last).

(* The tail of a digit: i heads, and for a Gaussian a coin that keeps them. *)
Let r : R := p_of_tail l (Decay (63 * step d) (step d)).
Let x (i : nat) : R := p_of_tail l (Excess (Z.of_nat i)).
Definition beyond_law (i : nat) : R := r ^ i * (1 - r) * x i.
Let attempt (fuel : nat) : program coin (option Z) :=
  and_then (heads fuel (OfTail (Decay (63 * step d) (step d)))) (fun beyond => if_excess l (OfTail (Excess beyond))
    beyond).

Lemma r_range : 0 < r < 1.
Proof.
  unfold r. cbn [p_of_tail]. split; [apply exp_pos|]. rewrite <- exp_0. apply exp_increasing.
  generalize (slope_is_positive l Numerator Denominator). intros P.
  assert (0 < IZR (step d * if gaussian l then 2 * (63 * step d) else 1)) by (apply IZR_lt; destruct (gaussian l);
    nia). nra.
Qed.

Lemma x_range i : 0 <= x i <= 1.
Proof. apply tail_coin_range; trivial. cbn. lia. Qed.

Lemma x_0 : x 0 = 1.
Proof.
  unfold x. cbn [p_of_tail Z.of_nat]. destruct (gaussian l) eqn:G; [|reflexivity]. unfold density, dividend. rewrite G.
    cbn.
  unfold Rdiv. rewrite Rmult_0_l, Ropp_0. apply exp_0.
Qed.

Lemma attempt_is fuel g : expected coin (p_of l) (attempt (Datatypes.S fuel)) g
  = sum_f_R0 (fun i => r ^ i * (1 - r) * (x i * g (Some (Z.of_nat i)) + (1 - x i) * g None)) fuel.
Proof.
  unfold attempt. rewrite expected_then, heads_are. apply sum_eq. intros i _. rewrite (if_excess_is l) by reflexivity.
  reflexivity.
Qed.

Lemma geometric_is : is_series (fun i => r ^ i * (1 - r)) 1.
Proof.
  generalize r_range. intros Q. generalize (first_success (1 - r) r ltac:(lra)).
  replace ((1 - r) / (1 - r)) with 1 by (field; lra). exact (fun x => x).
Qed.

Lemma beyond_sums : is_series beyond_law (Series beyond_law).
Proof.
  apply Series_correct. apply (ex_series_le (K := R_AbsRing) (V := R_CompleteNormedModule) _ (fun i => r ^ i * (1 -
    r)));
    [|exists 1; exact geometric_is].
  intros i. generalize r_range (x_range i). intros Q X. assert (0 <= r ^ i * (1 - r)) by (apply Rmult_le_pos; [apply
    pow_le|]; lra).
  unfold norm, beyond_law. simpl. unfold abs. simpl. rewrite Rabs_pos_eq by (apply Rmult_le_pos; lra). nra.
Qed.

Lemma beyond_is_positive : 1 - r <= Series beyond_law.
Proof.
  assert (L : is_lim_seq (sum_n beyond_law) (Series beyond_law)) by exact beyond_sums.
  refine (is_lim_seq_le (fun _ => 1 - r) _ _ _ _ (is_lim_seq_const _) L). intros n. rewrite sum_n_Reals.
  generalize r_range. intros Q. induction n as [|n IH].
  - unfold beyond_law. simpl. rewrite x_0. lra.
  - rewrite tech5. assert (0 <= beyond_law (Datatypes.S n)); [|lra].
    generalize (x_range (Datatypes.S n)). intros X. apply Rmult_le_pos; [apply Rmult_le_pos; [apply pow_le|]|]; lra.
Qed.

(* So the loop gives 63 + h as often as one attempt does, over what an attempt gives at all. *)
Theorem entries_beyond h :
  is_lim_seq (fun fuel => expected coin (p_of l) (entry_beyond l fuel d) (fun e => one (e =? 63 + Z.of_nat h)%Z))
    (beyond_law h / Series beyond_law).
Proof.
  generalize r_range beyond_is_positive. intros Q P. replace (Series beyond_law) with (1 - (1 - Series beyond_law)) by
    ring.
  apply (is_lim_seq_ext (fun n => expected coin (p_of l) (until_some n (attempt n)) (fun i => one (i =? Z.of_nat
    h)%Z))).
  { intros n. unfold entry_beyond. rewrite expected_then.
    apply (expected_ext coin (p_of l) (fun _ => True) (fun _ => True)); [apply keeps_to_all|].
    intros i _. cbn [expected]. f_equal. destruct (Z.eqb_spec i (Z.of_nat h)), (Z.eqb_spec (63 + i) (63 + Z.of_nat h));
      lia. }
  apply (first_success_of_attempts coin (p_of l) attempt (fun _ i => one (i =? Z.of_nat h)%Z) _ _ r).
  - apply is_lim_seq_incr_1, (is_lim_seq_ext (fun n => if (h <=? n)%nat then beyond_law h else 0)); [|apply
    limit_of_one].
    intros n. rewrite attempt_is, <- sum_of_one. apply sum_eq. intros i _. unfold beyond_law. cbn [some_of]. ring.
  - apply is_lim_seq_incr_1, (is_lim_seq_ext (fun n => sum_f_R0 (fun i => r ^ i * (1 - r)) n - sum_f_R0 beyond_law n)).
    + intros n. rewrite attempt_is, <- minus_sum. apply sum_eq. intros i _. unfold beyond_law. cbn [nothing]. ring.
    + apply is_lim_seq_minus'; [apply (is_lim_seq_ext (sum_n (fun i => r ^ i * (1 - r)))); [intros; apply sum_n_Reals|
        exact geometric_is]|apply (is_lim_seq_ext (sum_n beyond_law)); [intros; apply sum_n_Reals|exact beyond_sums]].
  - lra.
  - intros [|n]; [change (0 <= 0 <= r); lra|]. rewrite attempt_is. split.
    + apply cond_pos_sum. intros i. generalize (x_range i). cbn [nothing]. intros X.
      apply Rmult_le_pos; [apply Rmult_le_pos; [apply pow_le|]|]; lra.
    + apply Rle_trans with (r - r ^ Datatypes.S n); [|generalize (pow_le r (Datatypes.S n)); lra].
      induction n as [|n IH]; [simpl; rewrite x_0; lra|]. rewrite tech5. generalize (x_range (Datatypes.S n)). cbn
        [nothing] in *.
      intros X. assert (0 <= r ^ Datatypes.S n * (1 - r) * x (Datatypes.S n))
        by (apply Rmult_le_pos; [apply Rmult_le_pos; [apply pow_le|]|]; lra).
      rewrite <- (tech_pow_Rmult r (Datatypes.S n)). lra.
Qed.

(* What the entry of a word comes to, where only one entry below 63 counts. *)
Lemma resolved_entry fuel G k c entry : (0 <= k < 63)%Z -> (forall e, (0 <= e < 63)%Z -> G e = one (e =? k)%Z * c) ->
  (0 <= entry <= 63)%Z ->
  expected coin (p_of l) (resolve_entry l fuel d last entry) G
  = one (entry =? k)%Z * c + one (entry =? 63)%Z
      * ((1 - (1 - IZR (entry_words d 63) / 64) ^ fuel) / IZR (entry_words d 63)
         * (lacks k * c + lacks 63 * expected coin (p_of l) (entry_beyond l fuel d) G)).
Proof.
  intros K Only E. destruct (sound_facts_of_digit l d last Numerator Denominator Step S Rest) as [_ [_ [W _]]]. assert
    (W' : 1 <= IZR (entry_words d 63) <= 64) by (split; apply IZR_le, W).
  unfold resolve_entry. destruct (Z.eqb_spec entry 63) as [->|N].
  2: { cbn [expected one]. rewrite Only by lia. ring. }
  rewrite (proj2 (Z.eqb_neq 63 k)) by lia. cbn [one]. rewrite expected_then. unfold rest.
  assert (Q : mean 6 (fun e => p_of l (Lacking d last e)) = IZR (entry_words d 63) / 64)
    by (apply mean_lacking; assumption).
  rewrite (kept_proposals_are coin (p_of l) 6 (Lacking d last)), Q by (rewrite ?Q; lia || lra).
  set (X := expected coin (p_of l) (entry_beyond l fuel d) G).
  rewrite (mean_ext 6 _ (fun e => lacks k * c * one (e =? k)%Z + lacks 63 * X * one (e =? 63)%Z)).
  - rewrite mean_plus, !mean_scale, !mean_single by (change (2^ 6) with 64%Z; lia). change (IZR (2^ 6)) with 64. field.
    lra.
  - intros e H. change (2^ 6) with 64%Z in H. cbn [p_of]. destruct (Z.eqb_spec e 63) as [->|N].
    + rewrite (proj2 (Z.eqb_neq 63 k)) by lia. fold X. cbn [one]. ring.
    + cbn [expected one]. rewrite Only by lia. destruct (Z.eqb_spec e k) as [->|]; cbn [one]; ring.
Qed.

(* A function of the entry and of the bit that holds the sign, on uniform words. *)
Definition drawn_digit (F : Z -> bool -> R) : R :=
  mean 8 (fun head => mean 56 (fun fraction => F (entry_of d fraction head) (Z.testbit head 7))).

Lemma drawn_digit_is F (k : bool -> Z) (c X : bool -> R) :
  (forall e b, (0 <= e <= 63)%Z -> F e b = one (e =? k b)%Z * c b + one (e =? 63)%Z * X b) ->
  let part b := 1 / 2 * ((IZR (entry_words d (k b)) * c b + IZR (entry_words d 63) * X b) / IZR (2 ^ 62)) in
  drawn_digit F = part true + part false.
Proof.
  intros E part. destruct (sound_facts_of_digit l d last Numerator Denominator Step S Rest) as [_ [_ [_ [_ [Range
    _]]]]].
  set (on := fun e b f => mean 8 (fun head => mean 56 (fun fraction =>
    f * (one (entry_of d fraction head =? e)%Z * one (Bool.eqb (Z.testbit head 7) b))))).
  assert (On : forall e b f, on e b f = f * (IZR (entry_words d e) / IZR (2 ^ 62) * (1 / 2))).
  { intros e b f. rewrite <- (entry_is_chosen l d last e b S), <- mean_scale. apply mean_ext. intros head _.
    apply mean_scale. }
  transitivity (on (k true) true (c true) + on 63%Z true (X true) + (on (k false) false (c false) + on 63%Z false (X
    false))).
  - unfold drawn_digit, on. rewrite <- !mean_plus. apply mean_ext. intros head _. rewrite <- !mean_plus. apply mean_ext.
    intros fraction _. rewrite E by apply Range. destruct (Z.testbit head 7); cbn [Bool.eqb one]; ring.
  - rewrite !On. unfold part. assert (N : IZR (2 ^ 62) <> 0) by (apply not_0_IZR; discriminate). revert N.
    generalize (IZR (2 ^ 62)) (IZR (entry_words d (k true))) (IZR (entry_words d (k false))) (IZR (entry_words d 63)).
    intros. field. exact N.
Qed.

(* The probability of an entry. *)
Definition entry_law (e : Z) : R :=
  if (e <? 63)%Z then T e - T (e + 1) else T 63 * (beyond_law (Z.to_nat (e - 63)) / Series beyond_law).

Lemma keeps_to_beyond (ok : coin -> Prop) fuel : (forall c, allowed c -> ok (OfTail c)) ->
  keeps_to coin ok (fun e => 63 <= e)%Z (entry_beyond l fuel d).
Proof.
  intros Ok. apply (keeps_to_then coin ok (fun i => 0 <= i)%Z); [|intros i I; cbn [keeps_to]; lia].
  apply keeps_to_until.
  apply (keeps_to_then coin ok (fun i => 0 <= i)%Z).
  - apply keeps_to_heads, Ok. cbn [allowed]. lia.
  - intros i I. unfold if_excess, if_heads. destruct (gaussian l); [|exact I]. split; [apply Ok, I|]. intros [|];
    [exact I|exact Logic.I].
Qed.

Lemma keeps_to_entry (ok : coin -> Prop) fuel entry : (forall c, allowed c -> ok (OfTail c)) ->
  (forall e, (0 <= e <= 63)%Z -> ok (Lacking d last e)) -> (0 <= entry)%Z ->
  keeps_to coin ok (fun e => 0 <= e)%Z (resolve_entry l fuel d last entry).
Proof.
  intros Ok Ok' E. unfold resolve_entry. destruct (entry =? 63)%Z; [|exact E].
  apply (keeps_to_then coin ok (fun e => 0 <= e < 2 ^ 6)%Z).
  - apply keeps_to_until, keeps_to_proposal; [lia|]. intros e H. apply Ok'. lia.
  - intros e H. destruct (e =? 63)%Z; [|apply H].
    apply (keeps_to_weaker coin ok ok (fun e => 63 <= e)%Z); [trivial|intros; lia|apply keeps_to_beyond, Ok].
Qed.

(* In the limit of all attempts a digit whose words and rest are drawn gives each entry with its probability: here of a
   function that is not zero at one entry only, for each sign. *)
Theorem digit_limit (G : nat -> bool -> Z -> R) (k : bool -> Z) (c : nat -> bool -> R) (c' : bool -> R) :
  (forall b, (0 <= k b)%Z /\ (last = false -> (k b < 63)%Z)) ->
  (forall n b e, (0 <= e)%Z -> (last = false -> (e < 63)%Z) -> G n b e = one (e =? k b)%Z * c n b) ->
  (forall b, is_lim_seq (fun n => c n b) (c' b)) ->
  is_lim_seq (fun n => drawn_digit (fun entry b => expected coin (p_of l) (resolve_entry l n d last entry) (G n b)))
    (1 / 2 * (entry_law (k true) * c' true) + 1 / 2 * (entry_law (k false) * c' false)).
Proof.
  intros K Only C. destruct (sound_facts_of_digit l d last Numerator Denominator Step S Rest) as [_ [_ [W [_ [_ [_
    Closed]]]]]].
  assert (W' : 1 <= IZR (entry_words d 63) <= 64) by (split; apply IZR_le, W).
  set (phi := fun n => (1 - (1 - IZR (entry_words d 63) / 64) ^ n) / IZR (entry_words d 63)).
  set (kk := fun b => if (k b <? 63)%Z then k b else 0%Z).
  set (cc := fun n b => if (k b <? 63)%Z then c n b else 0).
  set (Y := fun n b => lacks 63 * expected coin (p_of l) (entry_beyond l n d) (G n b)).
  assert (KK : forall b, (0 <= kk b < 63)%Z) by (intros b; unfold kk; destruct (K b), (Z.ltb_spec (k b) 63); lia).
  apply (is_lim_seq_ext (fun n =>
    1 / 2 * ((IZR (entry_words d (kk true)) * cc n true + IZR (entry_words d 63)
      * (phi n * (lacks (kk true) * cc n true + Y n true))) / IZR (2 ^ 62))
    + 1 / 2 * ((IZR (entry_words d (kk false)) * cc n false + IZR (entry_words d 63)
      * (phi n * (lacks (kk false) * cc n false + Y n false))) / IZR (2 ^ 62)))).
  { intros n. symmetry. apply (drawn_digit_is _ kk (cc n) (fun b => phi n * (lacks (kk b) * cc n b + Y n b))).
    intros e b E. apply resolved_entry; [apply KK| |exact E]. intros e' E'. rewrite Only by lia. unfold kk, cc.
    destruct (Z.ltb_spec (k b) 63); [reflexivity|]. rewrite (proj2 (Z.eqb_neq e' (k b))) by lia. cbn [one]. ring. }
  assert (Phi : is_lim_seq phi (/ IZR (entry_words d 63))).
  { unfold phi. replace (/ IZR (entry_words d 63)) with ((1 - 0) / IZR (entry_words d 63)) by (field; lra).
    apply is_lim_seq_div'; [|apply is_lim_seq_const|lra]. apply is_lim_seq_minus'; [apply is_lim_seq_const|].
    apply is_lim_seq_geom. rewrite Rabs_pos_eq; lra. }
  set (y := fun b => if (k b <? 63)%Z then 0
    else IZR (2 ^ 62) * T 63 * (c' b * (beyond_law (Z.to_nat (k b - 63)) / Series beyond_law))).
  assert (L63 : lacks 63 = IZR (2 ^ 62) * T 63) by (unfold lacking; change (63 <? 63)%Z with false; cbv iota; ring).
  assert (LY : forall b, is_lim_seq (fun n => Y n b) (y b)).
  { intros b. unfold Y, y. destruct (K b) as [K0 K1].
    assert (Last : last = true \/ last = false) by (destruct last; auto). destruct Last as [L|L].
    - apply (is_lim_seq_ext (fun n => lacks 63 * (c n b * expected coin (p_of l) (entry_beyond l n d) (fun e => one (e
      =? k b)%Z)))).
      { intros n. f_equal. transitivity (expected coin (p_of l) (entry_beyond l n d) (fun e => c n b * one (e =? k b)%Z
        + 0 * 0)).
        - rewrite expected_linear. ring.
        - apply (expected_ext coin (p_of l) (fun _ => True) (fun e => 63 <= e)%Z); [apply keeps_to_beyond; trivial|].
          intros e E. rewrite Only by (lia || congruence). ring. }
      rewrite L63. destruct (Z.ltb_spec (k b) 63) as [Lt|Ge].
      + apply (is_lim_seq_ext (fun _ => 0)); [|apply is_lim_seq_const]. intros n.
        rewrite (expected_ext coin (p_of l) (fun _ => True) (fun e => 63 <= e)%Z _ _ (fun _ => 0 * 0 + 0 * 0));
          [rewrite expected_linear; ring|apply keeps_to_beyond; trivial|].
        intros e E. rewrite (proj2 (Z.eqb_neq e (k b))) by lia. cbn [one]. ring.
      + apply is_lim_seq_mult'; [apply is_lim_seq_const|]. apply is_lim_seq_mult'; [apply C|].
        generalize (entries_beyond (Z.to_nat (k b - 63))). rewrite Z2Nat.id by lia.
        replace (63 + (k b - 63))%Z with (k b) by ring. exact (fun x => x).
    - rewrite L63, Closed, Rmult_0_r by exact L. rewrite (proj2 (Z.ltb_lt (k b) 63)) by auto.
      apply (is_lim_seq_ext (fun _ => 0)); [intros; ring|apply is_lim_seq_const]. }
  assert (CC : forall b, is_lim_seq (fun n => cc n b) (Finite (if (k b <? 63)%Z then c' b else 0))).
  { intros b. unfold cc. destruct (k b <? 63)%Z; [apply C|apply is_lim_seq_const]. }
  assert (Part : forall b, is_lim_seq (fun n => 1 / 2 * ((IZR (entry_words d (kk b)) * cc n b + IZR (entry_words d 63)
      * (phi n * (lacks (kk b) * cc n b + Y n b))) / IZR (2 ^ 62))) (1 / 2 * (entry_law (k b) * c' b))).
  { intros b. replace (1 / 2 * (entry_law (k b) * c' b)) with
      (1 / 2 * ((IZR (entry_words d (kk b)) * (if (k b <? 63)%Z then c' b else 0) + IZR (entry_words d 63)
        * (/ IZR (entry_words d 63) * (lacks (kk b) * (if (k b <? 63)%Z then c' b else 0) + y b))) / IZR (2 ^ 62))).
    - apply is_lim_seq_mult'; [apply is_lim_seq_const|]. apply is_lim_seq_div'; [|apply is_lim_seq_const|apply
      not_0_IZR; discriminate].
      apply is_lim_seq_plus'; [apply is_lim_seq_mult'; [apply is_lim_seq_const|apply CC]|].
      apply is_lim_seq_mult'; [apply is_lim_seq_const|]. apply is_lim_seq_mult'; [exact Phi|].
      apply is_lim_seq_plus'; [apply is_lim_seq_mult'; [apply is_lim_seq_const|apply CC]|apply LY].
    - assert (N : IZR (2 ^ 62) <> 0) by (apply not_0_IZR; discriminate). unfold entry_law, kk, y, lacking.
      destruct (Z.ltb_spec (k b) 63) as [Lt|Ge].
      + rewrite (proj2 (Z.ltb_lt (k b) 63)) by exact Lt. revert N W'.
        generalize (IZR (2 ^ 62)) (T (k b)) (T (k b + 1)) (IZR (entry_words d 63)) (IZR (entry_words d (k b))). intros.
          field. lra.
      + assert (P : Series beyond_law <> 0) by (generalize beyond_is_positive r_range; lra). revert N W' P.
        generalize (IZR (2 ^ 62)) (Series beyond_law) (IZR (entry_words d 63)) (T 63) (T 0) (T (0 + 1)). intros. field.
          lra. }
  apply is_lim_seq_plus'; apply Part.
Qed.
End Digit.
