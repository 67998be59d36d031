(* With which probability a program gives what: where its coins are exact, and on uniform random words, where each coin
   is
   a comparison that draws as many words as it needs. The latter is the former but for words that do not suffice. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Dpnoise Require Import Words Values Integers Refine.
Import ListNotations.
Open Scope R_scope.

(* The probability that U < p, given that U lies from u to u + 1 in units of which 1 / p' are p. *)
Definition part (x : R) : R := Rmax 0 (Rmin 1 x).

Lemma mean_of_parts k : forall x, mean k (fun word => part (x * IZR (2^ k) - IZR word)) = part x.
Proof.
  induction k as [|k IH]; intros x; [cbn [mean]; f_equal; simpl; ring|]. cbn [mean].
  transitivity (mean k (fun word => part (x * IZR (2^ k) - IZR word))); [|apply IH].
  unfold Rdiv. rewrite Rmult_comm, <- mean_plus, <- mean_scale. apply mean_ext. intros word _.
  rewrite pow_S, !plus_IZR, !mult_IZR. set (y := x * IZR (2^ k) - IZR word).
  replace (x * (2 * IZR (2^ k)) - (2 * IZR word + 1)) with (2 * y - 1) by (unfold y; ring).
  replace (x * (2 * IZR (2^ k)) - 2 * IZR word) with (2 * y) by (unfold y; ring).
  unfold part, Rmax, Rmin. repeat destruct (Rle_dec _ _); lra.
Qed.

Lemma mean_of_halves k g : mean (S k) (fun word => g (word / 2)%Z) = mean k g.
Proof.
  cbn [mean]. rewrite (mean_ext k (fun w => g (2 * w / 2)%Z) g), (mean_ext k (fun w => g ((2 * w + 1) / 2)%Z) g); [lra|
    |];
    intros w _; f_equal; Z.to_euclidean_division_equations; lia.
Qed.

Lemma mean_of_means j k : forall g, mean j (fun a => mean k (g a)) = mean k (fun b => mean j (fun a => g a b)).
Proof.
  induction j as [|j IH]; intros g; [reflexivity|]. cbn [mean]. rewrite !IH. unfold Rdiv.
  rewrite <- mean_plus, <- mean_scale_right. reflexivity.
Qed.

(* Means over 64 bits are not to be computed. *)
Local Opaque mean.

(* The mean over lists of n words of 64 bits. *)
Fixpoint mean_of_words (n : nat) (g : list Z -> R) : R :=
  match n with O => g [] | S n => mean 64 (fun word => mean_of_words n (fun words => g (word :: words))) end.

(* The mean of g over what a program gives on words; where they do not suffice, or it stops, `otherwise`. *)
Definition of_found {A : Type} (g : A -> R) (otherwise : R) (d : drawn A) : R :=
  match d with Some (found, _) => g found | None => otherwise end.

Section Coins.
Variables (coin : Type) (p_of : coin -> R) (sides : coin -> Z -> (Z * Z) * (Z * Z)).

(* The same where coins are exact; nothing counts where the program stops. *)
Fixpoint expected {A : Type} (p : program coin A) (g : A -> R) : R :=
  match p with
  | Gives found => g found
  | Stops => 0
  | Draws next => mean 64 (fun word => expected (next word) g)
  | Throws c next => p_of c * expected (next true) g + (1 - p_of c) * expected (next false) g
  end.

(* Each coin is one of `ok`, and all that it gives is one of `P`. *)
Fixpoint keeps_to {A : Type} (ok : coin -> Prop) (P : A -> Prop) (p : program coin A) : Prop :=
  match p with
  | Gives found => P found
  | Stops => True
  | Draws next => forall word, (0 <= word < 2 ^ 64)%Z -> keeps_to ok P (next word)
  | Throws c next => ok c /\ forall shows, keeps_to ok P (next shows)
  end.

(* What a coin compares is U w < a with a / w = p, by bounds that hold. *)
Definition exact (c : coin) : Prop :=
  exists w a, 0 < w /\ p_of c = a / w /\ 0 <= p_of c <= 1 /\ hold w a (sides c).

Lemma mean_of_words_le n : forall g h, (forall words, g words <= h words) -> mean_of_words n g <= mean_of_words n h.
Proof. induction n as [|n IH]; intros g h H; [apply H|]. apply mean_le. intros word _. apply IH. intros. apply H. Qed.

Lemma mean_of_words_const n c : mean_of_words n (fun _ => c) = c.
Proof.
  induction n as [|n IH]; [reflexivity|]. cbn [mean_of_words]. transitivity (mean 64 (fun _ => c)); [|apply
    mean_const]. apply mean_ext.
  intros. exact IH.
Qed.

Lemma mean_of_words_minus n : forall g, mean_of_words n (fun words => 1 - g words) = 1 - mean_of_words n g.
Proof.
  induction n as [|n IH]; intros g; [reflexivity|]. cbn [mean_of_words].
  rewrite (mean_ext 64 _ (fun word => 1 + -1 * mean_of_words n (fun words => g (word :: words)))).
  - rewrite mean_plus, mean_const, mean_scale. ring.
  - intros word _. rewrite IH. ring.
Qed.

Lemma is_below_uses steps : forall c limbs uniform count words b more used,
  is_below steps c limbs uniform count words = Some (b, more, used) -> (count <= used)%Z.
Proof.
  induction steps as [|steps IH]; intros c limbs uniform count words b more used; [discriminate|]. cbn [is_below].
  destruct (c limbs) as [w a]. destruct (judge_bounds _ _ _ _ _) as [[| |] below].
  - intros E. injection E as _ _ <-. lia.
  - destruct words as [|word words]; [discriminate|]. intros E. apply IH in E. lia.
  - apply IH.
Qed.

(* A comparison, whatever follows it: on words it gives each answer with at most its probability. *)
Lemma comparison_at_most w a c : 0 < w -> hold w a c -> forall next most, (forall b n, mean_of_words n (next b) <= most
  b) ->
  (forall b, 0 <= most b) -> forall steps limbs uniform count n,
  (1 <= count)%Z -> (count + 2 <= limbs)%Z -> (0 <= uniform)%Z ->
  let t := part (a / w * IZR (2 ^ (64 * count - 1)) - IZR uniform) in
  mean_of_words n (fun words => match is_below steps c limbs uniform count words with
    | Some (b, _, used) => next b (skipn (Z.to_nat (used - count)) words) | None => 0 end)
  <= t * most true + (1 - t) * most false.
Proof.
  intros W H next most Most Positive. induction steps as [|steps IH]; intros limbs uniform count n C L U t.
  all: assert (T : 0 <= t <= 1) by (unfold t, part, Rmax, Rmin; repeat destruct (Rle_dec _ _); lra).
  all: assert (0 <= t * most true + (1 - t) * most false)
    by (apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra || apply Positive).
  { cbn [is_below]. rewrite mean_of_words_const. assumption. }
  cbn [is_below]. generalize (judge_bounds_is_right w a c limbs uniform (64 * count - 1) H ltac:(lia) U ltac:(lia)).
  assert (E : a / w * IZR (2 ^ (64 * count - 1)) - IZR uniform = (a * IZR (2 ^ (64 * count - 1)) - IZR uniform * w) / w)
    by (field; lra).
  destruct (c limbs) as [w' a']. destruct (judge_bounds _ _ _ _ _) as [[| |] below].
  - intros D. rewrite Z.sub_diag. cbn [Z.to_nat skipn].
    apply Rle_trans with (most below); [apply Most|]. assert (T' : t = one below).
    { destruct below; unfold decided_below, decided_above in D.
      - assert (1 <= (a * IZR (2 ^ (64 * count - 1)) - IZR uniform * w) / w) by (apply (Rle_div_r _ _ _ W); lra).
        unfold t. rewrite E. unfold part. rewrite Rmin_left, Rmax_right; cbn [one]; lra.
      - assert ((a * IZR (2 ^ (64 * count - 1)) - IZR uniform * w) / w <= 0) by (apply (Rle_div_l _ _ _ W); lra).
        unfold t. rewrite E. unfold part. rewrite Rmin_right, Rmax_left; cbn [one]; lra. }
    rewrite T'. destruct below; cbn [one]; lra.
  - intros _. destruct n as [|n]; [assumption|]. cbn [mean_of_words].
    apply Rle_trans with (mean 64 (fun word =>
      let t := part (a / w * IZR (2 ^ (64 * (count + 1) - 1)) - IZR (uniform * 2 ^ 64 + word)) in
      most false + t * (most true - most false))).
    + apply mean_le. intros word R. change (2^ 64) with (2 ^ 64)%Z in R. cbv zeta.
      eapply Rle_trans; [|eapply Rle_trans; [apply (IH (if (limbs <? count + 3)%Z then (2 * limbs)%Z else limbs)
        (uniform * 2 ^ 64 + word)%Z (count + 1)%Z n); lia || (destruct (Z.ltb_spec limbs (count + 3)); lia)|]];
        [|right; cbv zeta; ring].
      apply mean_of_words_le. intros words. destruct (is_below _ _ _ _ _ words) as [[[b more] used]|] eqn:B; [|lra].
      apply is_below_uses in B. replace (used - count)%Z with (Z.succ (used - (count + 1))) by lia.
      rewrite Z2Nat.inj_succ by lia. apply Rle_refl.
    + cbv zeta. rewrite mean_plus, mean_const, mean_scale_right. right.
      rewrite (mean_ext 64 _ (fun word => part ((a / w * IZR (2 ^ (64 * count - 1)) - IZR uniform) * IZR (2^ 64) - IZR
        word))).
      * rewrite mean_of_parts. fold t. ring.
      * intros word _. f_equal. change (2^ 64) with (2 ^ 64)%Z.
        replace (64 * (count + 1) - 1)%Z with (64 * count - 1 + 64)%Z by ring.
        rewrite Z.pow_add_r, plus_IZR, !mult_IZR by lia. ring.
  - intros _. apply IH; lia.
Qed.

Lemma expected_positive {A : Type} (ok : coin -> Prop) (P : A -> Prop) p g : (forall c, ok c -> 0 <= p_of c <= 1) ->
  keeps_to ok P p -> (forall found, P found -> 0 <= g found) -> 0 <= expected p g.
Proof.
  intros Ok. induction p as [found| |next IH|c next IH]; intros K G; cbn [expected]; [apply G, K|lra| |].
  - rewrite <- (mean_const 64 0). apply mean_le. intros word W. apply IH; [apply K, W|exact G].
  - destruct K as [C K]. specialize (Ok c C). generalize (IH true (K true) G) (IH false (K false) G).
    intros. apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra.
Qed.

Lemma words_at_most {A : Type} (p : program coin A) g n : keeps_to exact (fun found => 0 <= g found) p ->
  mean_of_words n (fun words => of_found g 0 (run sides p words)) <= expected p g.
Proof.
  assert (Positive : forall p : program coin A, keeps_to exact (fun found => 0 <= g found) p -> 0 <= expected p g).
  { intros q K. apply (expected_positive exact (fun found => 0 <= g found) q g); [intros c [w [a [_ [_ [C _]]]]]; exact
    C|exact K|trivial]. }
  revert n. induction p as [found| |next IH|c next IH]; intros n K; cbn [run of_found].
  - rewrite mean_of_words_const. apply Rle_refl.
  - rewrite mean_of_words_const. apply Rle_refl.
  - destruct n as [|n]; [apply (Positive (Draws next) K)|]. apply mean_le. intros word W. apply IH, K, W.
  - generalize (Positive (Throws c next) K). destruct n as [|n]; [intros H; exact H|]. intros _. destruct K as [[w [a
    [W [E [Pr H]]]]] K].
    cbn [mean_of_words]. unfold bind, decide.
    eapply Rle_trans; [apply mean_le; intros word R|].
    + eapply Rle_trans; [|apply (comparison_at_most w a (sides c) W H
        (fun b words => of_found g 0 (run sides (next b) words)) (fun b => expected (next b) g)
        (fun b n => IH b n (K b)) (fun b => Positive (next b) (K b)) 9 4 (word / 2) 1 n)%Z; lia ||
        (apply Z.div_pos; lia)].
      apply mean_of_words_le. intros words. destruct (is_below _ _ _ _ _ words) as [[[b more] used]|]; apply Rle_refl.
    + cbv beta. cbn [expected]. right.
      rewrite (mean_of_halves 63 (fun u => part (a / w * IZR (2 ^ (64 * 1 - 1)) - IZR u) * expected (next true) g
        + (1 - part (a / w * IZR (2 ^ (64 * 1 - 1)) - IZR u)) * expected (next false) g)).
      rewrite (mean_ext 63 _ (fun u => expected (next false) g
        + part (p_of c * IZR (2^ 63) - IZR u) * (expected (next true) g - expected (next false) g))).
      * rewrite mean_plus, mean_const, mean_scale_right, mean_of_parts. unfold part. rewrite Rmin_right, Rmax_right by
        lra. ring.
      * intros u _. rewrite <- E. change (2^ 63) with (2 ^ (64 * 1 - 1))%Z. ring.
Qed.

Lemma keeps_to_weaker {A : Type} (ok ok' : coin -> Prop) (P P' : A -> Prop) p : (forall c, ok c -> ok' c) ->
  (forall found, P found -> P' found) -> keeps_to ok P p -> keeps_to ok' P' p.
Proof.
  intros Ok G. induction p as [found| |next IH|c next IH]; cbn [keeps_to]; intros K; [apply G, K|exact I| |].
  - intros word W. apply IH, K, W.
  - destruct K as [C K]. split; [apply Ok, C|]. intros shows. apply IH, K.
Qed.

Lemma keeps_to_all {A : Type} (p : program coin A) : keeps_to (fun _ => True) (fun _ => True) p.
Proof. induction p; cbn [keeps_to]; auto. Qed.

Lemma both_at_most_1 {A : Type} (ok : coin -> Prop) (P : A -> Prop) p g : (forall c, ok c -> 0 <= p_of c <= 1) ->
  keeps_to ok P p -> expected p g + expected p (fun found => 1 - g found) <= 1.
Proof.
  intros Ok. induction p as [found| |next IH|c next IH]; cbn [expected]; intros K; [lra|lra| |].
  - rewrite <- mean_plus. apply Rle_trans with (mean 64 (fun _ => 1)); [|right; apply mean_const].
    apply mean_le. intros word W. apply IH, K, W.
  - destruct K as [C K]. specialize (Ok c C). generalize (IH true (K true)) (IH false (K false)).
    set (x := expected (next true) g). set (y := expected (next false) g). set (x' := expected (next true) _).
    set (y' := expected (next false) _). intros. nra.
Qed.

(* On uniform words a program gives what it should with at most the probability that exact coins have, and is short of
   that by at most the probability that the words do not suffice (or the steps of the program and its comparisons). *)
Theorem words_follow_coins {A : Type} (p : program coin A) g n : keeps_to exact (fun _ => True) p ->
  (forall found, 0 <= g found <= 1) ->
  mean_of_words n (fun words => of_found g 0 (run sides p words)) <= expected p g
  <= mean_of_words n (fun words => of_found g 1 (run sides p words)).
Proof.
  intros K G. assert (Ok : forall c, exact c -> 0 <= p_of c <= 1) by (intros c [w [a [_ [_ [C _]]]]]; exact C). split.
  - apply words_at_most, (keeps_to_weaker exact exact (fun _ => True)); trivial. intros. apply G.
  - generalize (both_at_most_1 exact _ p g Ok K) (words_at_most p (fun found => 1 - g found) n).
    intros B M. assert (M' := M ltac:(apply (keeps_to_weaker exact exact (fun _ => True)); trivial; intros found _;
      specialize (G found); lra)).
    assert (E : mean_of_words n (fun words => of_found g 1 (run sides p words))
      = 1 - mean_of_words n (fun words => of_found (fun found => 1 - g found) 0 (run sides p words))); [|lra].
    rewrite <- mean_of_words_minus. apply Rle_antisym; apply mean_of_words_le; intros words;
      destruct (run sides p words) as [[found left]|]; cbn [of_found]; lra.
Qed.

(* Means of programs that are put together. *)
Lemma expected_then {A B : Type} (p : program coin A) (next : A -> program coin B) g :
  expected (and_then p next) g = expected p (fun found => expected (next found) g).
Proof.
  induction p as [found| |more IH|c more IH]; cbn [and_then expected]; [reflexivity|reflexivity| |].
  - apply mean_ext. intros word _. apply IH.
  - rewrite !IH. reflexivity.
Qed.

Lemma keeps_to_then {A B : Type} (ok : coin -> Prop) (P : A -> Prop) (Q : B -> Prop) p next : keeps_to ok P p ->
  (forall found, P found -> keeps_to ok Q (next found)) -> keeps_to ok Q (and_then p next).
Proof.
  intros K N. induction p as [found| |more IH|c more IH]; cbn [and_then keeps_to] in *; [apply N, K|exact I| |].
  - intros word W. apply IH, K, W.
  - split; [apply K|]. intros shows. apply IH, K.
Qed.

Lemma expected_ext {A : Type} (ok : coin -> Prop) (P : A -> Prop) p g h : keeps_to ok P p ->
  (forall found, P found -> g found = h found) -> expected p g = expected p h.
Proof.
  intros K E. induction p as [found| |next IH|c next IH]; cbn [expected]; [apply E, K|reflexivity| |].
  - apply mean_ext. intros word W. apply IH, K, W.
  - destruct K as [_ K]. rewrite !IH by apply K. reflexivity.
Qed.

Lemma expected_linear {A : Type} (p : program coin A) a b g h :
  expected p (fun found => a * g found + b * h found) = a * expected p g + b * expected p h.
Proof.
  induction p as [found| |next IH|c next IH]; cbn [expected]; [reflexivity|ring| |].
  - rewrite <- !mean_scale, <- mean_plus. apply mean_ext. intros word _. apply IH.
  - rewrite !IH. ring.
Qed.

Lemma expected_of_mean {A : Type} (p : program coin A) k g :
  expected p (fun found => mean k (fun w => g w found)) = mean k (fun w => expected p (g w)).
Proof.
  induction p as [found| |next IH|c next IH]; cbn [expected]; [reflexivity|symmetry; apply mean_const| |].
  - rewrite mean_of_means. apply mean_ext. intros word _. apply IH.
  - rewrite !IH, mean_plus, !mean_scale. reflexivity.
Qed.

(* A loop of coins that stops at the first tails has the geometric law. *)
Lemma heads_are fuel c g :
  expected (heads (S fuel) c) g = sum_f_R0 (fun h => p_of c ^ h * (1 - p_of c) * g (Z.of_nat h)) fuel.
Proof.
  revert g. induction fuel as [|fuel IH]; intros g.
  - cbn. ring.
  - change (heads (S (S fuel)) c) with (Throws c (fun more => if more then and_then (heads (S fuel) c)
      (fun count => Gives (count + 1)%Z) else Gives 0%Z)).
    cbn [expected]. rewrite expected_then. cbn [expected]. rewrite IH, scal_sum, (decomp_sum _ (S fuel)) by lia.
    cbn [pred]. rewrite (sum_eq _ (fun i => p_of c ^ S i * (1 - p_of c) * g (Z.of_nat (S i)))).
    + simpl. ring.
    + intros i _. replace (Z.of_nat i + 1)%Z with (Z.of_nat (S i)) by lia. simpl. ring.
Qed.

(* An attempt again and again: each gives g with s in the mean and nothing with r. *)
Definition some_of {A : Type} (g : A -> R) (found : option A) : R := match found with Some found => g found | None => 0
  end.
Definition nothing {A : Type} (found : option A) : R := match found with Some _ => 0 | None => 1 end.

Lemma until_some_is {A : Type} fuel (attempt : program coin (option A)) g : expected attempt nothing <> 1 ->
  expected (until_some fuel attempt) g
  = expected attempt (some_of g) * ((1 - expected attempt nothing ^ fuel) / (1 - expected attempt nothing)).
Proof.
  intros N. set (r := expected attempt nothing) in *.
  induction fuel as [|fuel IH]; [cbn; field; lra|]. cbn [until_some]. rewrite expected_then.
  transitivity (expected attempt (fun found => 1 * some_of g found + expected (until_some fuel attempt) g * nothing
    found)).
  - apply (expected_ext (fun _ => True) (fun _ => True)); [apply keeps_to_all|].
    intros [found|] _; cbn [expected some_of nothing]; ring.
  - rewrite expected_linear, IH. fold r. simpl. field. lra.
Qed.

(* So in the limit it gives g with s / (1 - r), also where attempts are better and better ones. *)
Theorem first_success_of_attempts {A : Type} (attempts : nat -> program coin (option A)) (g : nat -> A -> R)
    (s r most : R) :
  is_lim_seq (fun n => expected (attempts n) (some_of (g n))) s ->
  is_lim_seq (fun n => expected (attempts n) nothing) r -> most < 1 ->
  (forall n, 0 <= expected (attempts n) nothing <= most) ->
  is_lim_seq (fun n => expected (until_some n (attempts n)) (g n)) (s / (1 - r)).
Proof.
  intros Success Nothing M B. assert (Below : r <= most) by (exact (is_lim_seq_le _ _ _ _ (fun n => proj2 (B n))
    Nothing (is_lim_seq_const _))).
  apply (is_lim_seq_ext (fun n => expected (attempts n) (some_of (g n))
    * ((1 - expected (attempts n) nothing ^ n) / (1 - expected (attempts n) nothing)))).
  { intros n. symmetry. apply until_some_is. specialize (B n). lra. }
  unfold Rdiv. replace (s * / (1 - r)) with (s * ((1 - 0) * / (1 - r))) by ring.
  apply is_lim_seq_mult'; [exact Success|]. apply is_lim_seq_mult'.
  - apply is_lim_seq_minus'; [apply is_lim_seq_const|].
    apply (is_lim_seq_le_le (fun _ => 0) _ (fun n => most ^ n)).
    + intros n. split; [apply pow_le, B|apply pow_incr, B].
    + apply is_lim_seq_const.
    + apply is_lim_seq_geom. specialize (B 0%nat). rewrite Rabs_pos_eq; lra.
  - apply (is_lim_seq_inv _ (1 - r)); [|simpl; intros E; injection E; lra].
    apply is_lim_seq_minus'; [apply is_lim_seq_const|exact Nothing].
Qed.

(* A number below 2^k that is kept with a probability of its own. *)
Lemma proposal_is k (c : Z -> coin) (g : option Z -> R) : (k <= 64)%nat ->
  expected (proposal (Z.of_nat k) c) g = mean k (fun low => p_of (c low) * g (Some low) + (1 - p_of (c low)) * g None).
Proof.
  intros H. unfold proposal, if_heads. cbn [expected]. replace 64%nat with (k + (64 - k))%nat by lia.
  rewrite mean_split. set (m := mean k _). rewrite <- (mean_const (64 - k) m). apply mean_ext. intros high _.
  apply mean_ext. intros low L. rewrite Z.add_comm, Z.mod_add, Z.mod_small; [reflexivity|exact L|lia].
Qed.

Lemma kept_proposals_are k (c : Z -> coin) fuel g : (k <= 64)%nat ->
  let q := mean k (fun low => p_of (c low)) in 0 < q ->
  expected (until_some fuel (proposal (Z.of_nat k) c)) g
  = (1 - (1 - q) ^ fuel) * (mean k (fun low => p_of (c low) * g low) / q).
Proof.
  intros K q Q. assert (Nothing : expected (proposal (Z.of_nat k) c) nothing = 1 - q).
  { rewrite proposal_is by exact K. unfold q.
    replace (1 - _) with (mean k (fun _ => 1) + -1 * mean k (fun low => p_of (c low))) by (rewrite mean_const; ring).
    rewrite <- mean_scale, <- mean_plus. apply mean_ext. intros low _. cbn [nothing]. ring. }
  rewrite until_some_is by (rewrite Nothing; lra). rewrite Nothing, proposal_is by exact K.
  rewrite (mean_ext k _ (fun low => p_of (c low) * g low)) by (intros low _; cbn [some_of]; ring).
  field. lra.
Qed.

Lemma keeps_to_until {A : Type} (ok : coin -> Prop) (P : A -> Prop) fuel attempt :
  keeps_to ok (fun found => match found with Some found => P found | None => True end) attempt ->
  keeps_to ok P (until_some fuel attempt).
Proof.
  intros K. induction fuel as [|fuel IH]; [exact I|]. apply (keeps_to_then _ _ _ _ _ K).
  intros [found|] F; [exact F|exact IH].
Qed.

Lemma keeps_to_heads (ok : coin -> Prop) fuel c : ok c -> keeps_to ok (fun count => 0 <= count)%Z (heads fuel c).
Proof.
  intros C. induction fuel as [|fuel IH]; [exact I|]. split; [exact C|]. intros [|]; [|cbn; lia].
  apply (keeps_to_then _ _ _ _ _ IH). intros count P. cbn. lia.
Qed.

Lemma keeps_to_proposal (ok : coin -> Prop) bits c : (0 <= bits)%Z -> (forall low, (0 <= low < 2 ^ bits)%Z -> ok (c
  low)) ->
  keeps_to ok (fun found => match found with Some low => (0 <= low < 2 ^ bits)%Z | None => True end) (proposal bits c).
Proof.
  intros B C word _. assert (R : (0 <= word mod 2 ^ bits < 2 ^ bits)%Z) by (apply Z.mod_pos_bound, Z.pow_pos_nonneg;
    lia).
  split; [apply C, R|]. intros [|]; [exact R|exact I].
Qed.
End Coins.
