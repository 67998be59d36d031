(* Numbers from pages have exactly the probabilities of their law. *)
From Coq Require Import Reals ZArith List Bool Lia Lra.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Core.
From Dpnoise Require Import Model Words Sound Values Integers Refine Programs Rest Alias PagesModel.
Import ListNotations.
Open Scope R_scope.

(* The mean over a word in its two parts: the fraction, and the byte with column and sign. *)
Definition word_mean (g : Z * Z -> R) : R := mean 8 (fun head => mean 56 (fun fraction => g (fraction, head))).

Lemma words_swap k g : word_mean (fun w => mean k (g w)) = mean k (fun v => word_mean (fun w => g w v)).
Proof.
  unfold word_mean. transitivity (mean 8 (fun head => mean k (fun v => mean 56 (fun fraction => g (fraction, head)
    v)))).
  - apply mean_ext. intros head _. apply (mean_of_means 56 k (fun fraction => g (fraction, head))).
  - apply mean_of_means.
Qed.

Lemma words_ext g h : (forall w, g w = h w) -> word_mean g = word_mean h.
Proof. intros E. apply mean_ext. intros head _. apply mean_ext. intros fraction _. apply E. Qed.

Lemma mean_limit k (g : nat -> Z -> R) (h : Z -> R) : (forall w, (0 <= w < 2^ k)%Z -> is_lim_seq (fun n => g n w) (h
  w)) ->
  is_lim_seq (fun n => mean k (g n)) (mean k h).
Proof.
  revert g h. induction k as [|k IH]; intros g h H; cbn [mean]; [apply H; simpl; lia|]. rewrite pow_S in H.
  unfold Rdiv. apply is_lim_seq_mult'; [|apply is_lim_seq_const].
  apply is_lim_seq_plus'; [apply (IH (fun n w => g n (2 * w)%Z))|apply (IH (fun n w => g n (2 * w + 1)%Z))];
    intros w W; apply H; lia.
Qed.

Lemma mean_picks k f e : (0 <= e < 2^ k)%Z -> mean k (fun w => one (e =? w)%Z * f w) = f e / IZR (2^ k).
Proof.
  intros E. rewrite (mean_ext k _ (fun w => f e * one (w =? e)%Z)).
  - rewrite mean_scale, mean_single by exact E. unfold Rdiv. ring.
  - intros w _. rewrite (Z.eqb_sym e w). destruct (Z.eqb_spec w e) as [->|]; unfold one; ring.
Qed.

Lemma mean_is_sum g : mean 6 g = sum_n (fun e => g (Z.of_nat e)) 63 / 64.
Proof. rewrite sum_n_Reals. lazy -[Rplus Rdiv Rmult Rinv IZR]. field. Qed.

Lemma words_62 : IZR (2 ^ 62) = 64 * IZR (2 ^ 56).
Proof. rewrite <- mult_IZR. reflexivity. Qed.
Lemma some_words : IZR (2 ^ 56) <> 0.
Proof. apply not_0_IZR. discriminate. Qed.

(* Algebra is quick where it does not look into these. *)
Opaque entry_words mean.
Ltac field_of_words := rewrite ?words_62; generalize some_words; generalize (IZR (2 ^ 56)); intros; field.

(* A table of 62 bits; each entry has as many of 2^62 words as it says. *)
Definition is_table (t : digit) : Prop :=
  (forall c, (0 <= c < 64)%Z -> (0 <= item (thresholds t) c < 2 ^ 56)%Z /\ (0 <= item (entries t) c < 64)%Z)
  /\ sum 6 (entry_words t) = (2 ^ 62)%Z.

Lemma entry_range t fraction head : is_table t -> (0 <= entry_of t fraction head < 64)%Z.
Proof.
  intros [T _]. assert (C : (0 <= Z.land head (2 ^ 6 - 1) < 64)%Z).
  { change (2 ^ 6 - 1)%Z with (Z.ones 6). rewrite Z.land_ones by lia. apply Z.mod_pos_bound. reflexivity. }
  unfold entry_of. destruct (_ <? _)%Z; [exact C|apply (T _ C)].
Qed.

Lemma mean_of_entry t g : is_table t ->
  word_mean (fun word => g (entry_of t (fst word) (snd word)) (Z.testbit (snd word) 7))
  = mean 6 (fun e => IZR (entry_words t e) / IZR (2 ^ 56) * ((g e true + g e false) / 2)).
Proof.
  intros T. transitivity (word_mean (fun word => mean 6 (fun e => 64 * (one (entry_of t (fst word) (snd word) =? e)%Z
    * g e (Z.testbit (snd word) 7))))).
  { apply words_ext. intros word. rewrite mean_scale, mean_picks by apply entry_range, T.
    change (IZR (2^ 6)) with 64. field. }
  rewrite words_swap. apply mean_ext. intros e _.
  assert (W : forall negative, word_mean (fun word => one (entry_of t (fst word) (snd word) =? e)%Z
      * one (Bool.eqb (Z.testbit (snd word) 7) negative)) = IZR (entry_words t e) / IZR (2 ^ 62) * (1/2)).
  { intros negative. apply entry_has_its_words. intros c C. apply T, C. }
  transitivity (64 * g e true * word_mean (fun word => one (entry_of t (fst word) (snd word) =? e)%Z
      * one (Bool.eqb (Z.testbit (snd word) 7) true))
    + 64 * g e false * word_mean (fun word => one (entry_of t (fst word) (snd word) =? e)%Z
      * one (Bool.eqb (Z.testbit (snd word) 7) false))).
  - unfold word_mean. rewrite <- !mean_scale, <- mean_plus. apply mean_ext. intros head _.
    rewrite <- !mean_scale, <- mean_plus. apply mean_ext. intros fraction _. cbn [fst snd].
    destruct (Z.testbit head 7); cbn [Bool.eqb one]; ring.
  - rewrite !W. field_of_words. assumption.
Qed.

Lemma entry_in_is tables page second : (0 <= page)%Z -> entry_in tables page second
  = match nth_error tables (Z.to_nat page) with Some t => entry_of t (fst second) (snd second) | None => 0%Z end.
Proof.
  intros P. unfold entry_in. change 0%Z with (Z.of_nat 0) at 1.
  assert (G : forall tables n chosen, snd (fold_left (fun '(own, chosen) table =>
      (own + 1, if page =? own then entry_of table (fst second) (snd second) else chosen)%Z) tables (Z.of_nat n,
        chosen))
    = match (if (Z.of_nat n <=? page)%Z then nth_error tables (Z.to_nat page - n) else None) with
        Some t => entry_of t (fst second) (snd second) | None => chosen end).
  { clear tables. induction tables as [|t tables IH]; intros n chosen; cbn [fold_left snd].
    - destruct (_ <=? _)%Z; [|reflexivity]. destruct (Z.to_nat page - n)%nat; reflexivity.
    - replace (Z.of_nat n + 1)%Z with (Z.of_nat (S n)) by lia. rewrite IH.
      destruct (Z.leb_spec (Z.of_nat (S n)) page) as [A|A], (Z.leb_spec (Z.of_nat n) page) as [B|B],
        (Z.eqb_spec page (Z.of_nat n)) as [C|C]; try lia; try reflexivity.
      + replace (Z.to_nat page - n)%nat with (S (Z.to_nat page - S n))%nat by lia. reflexivity.
      + replace (Z.to_nat page - n)%nat with 0%nat by lia. reflexivity. }
  rewrite G. change (Z.of_nat 0) with 0%Z. rewrite Nat.sub_0_r, (proj2 (Z.leb_le 0 page) P). reflexivity.
Qed.

(* A page p, an entry e of it and a sign have exactly as many of the words as the two tables say. *)
Theorem page_and_entry_are_chosen pages tables p e t (negative : bool) : is_table pages -> is_table t ->
  (0 <= p < 64)%Z -> (0 <= e < 64)%Z -> nth_error tables (Z.to_nat p) = Some t ->
  word_mean (fun first => word_mean (fun second =>
    let '(page, entry, _) := run_pages pages tables first second in
    one (page =? p)%Z * one (entry =? e)%Z * one (Bool.eqb (Z.testbit (snd second) 7) negative)))
  = IZR (entry_words pages p) / IZR (2 ^ 62) * (IZR (entry_words t e) / IZR (2 ^ 62)) * (1/2).
Proof.
  intros TP T P E N. unfold run_pages.
  rewrite (words_ext _ (fun first => (fun page (_ : bool) => one (page =? p)%Z * (IZR (entry_words t e) / IZR (2 ^ 62)
    * (1/2))) (entry_of pages (fst first) (snd first)) (Z.testbit (snd first) 7))).
  - rewrite (mean_of_entry pages (fun page (_ : bool) => one (page =? p)%Z * (IZR (entry_words t e) / IZR (2 ^ 62)
      * (1/2)))) by exact TP.
    rewrite (mean_ext 6 _ (fun w => one (p =? w)%Z * (IZR (entry_words pages w) / IZR (2 ^ 56)
      * (IZR (entry_words t e) / IZR (2 ^ 62) * (1/2))))) by (intros w _; rewrite (Z.eqb_sym p w);
      field_of_words; assumption).
    rewrite mean_picks by exact P. change (IZR (2^ 6)) with 64. field_of_words. assumption.
  - intros first. cbv beta. generalize (entry_range pages (fst first) (snd first) TP). intros Range.
    set (page := entry_of pages (fst first) (snd first)) in *. rewrite <- (entry_has_its_words t e negative)
      by (intros c C; apply T, C). unfold word_mean. rewrite <- mean_scale. apply mean_ext. intros head _.
    rewrite <- mean_scale. apply mean_ext. intros fraction _. cbn [snd]. rewrite entry_in_is by lia.
    destruct (Z.eqb_spec page p) as [->|]; [rewrite N; cbn [fst snd]|]; unfold one; ring.
Qed.

(* What the words of a table fall short of, for the probabilities p of its entries; the count of 63 is no entry's. *)
Definition lacking (p : Z -> R) (t : digit) (e : Z) : R :=
  IZR (2 ^ 62) * p e - IZR (if (e =? 63)%Z then 0 else entry_words t e).

(* A table fits probabilities if each entry below 63 has as many words as its probability less a half, rounded down, and
   at least none. Entry 63 must have less than a word. *)
Record fits (p : Z -> R) (t : digit) : Prop := Fits {
  it_is_a_table : is_table t;
  words_are_rounded : forall e, (0 <= e < 63)%Z -> entry_words t e = Z.max 0 (Zfloor (IZR (2 ^ 62) * p e - 1/2));
  not_negative : forall e, (0 <= e < 64)%Z -> 0 <= p e;
  they_add_up : mean 6 p = 1/64;
  last_is_small : IZR (2 ^ 62) * p 63%Z < 1 }.

Section Table.
Variables (p : Z -> R) (t : digit).
Hypothesis F : fits p t.

(* So half of it is the probability of a coin. *)
Theorem lacking_is_small e : (0 <= e < 64)%Z -> 0 <= lacking p t e <= 3/2.
Proof.
  intros E. unfold lacking. generalize (not_negative _ _ F e E). intros P.
  assert (Q : 0 <= IZR (2 ^ 62) * p e) by (apply Rmult_le_pos; [apply IZR_le; discriminate|exact P]).
  destruct (Z.eqb_spec e 63) as [->|N]; [generalize (last_is_small _ _ F); lra|].
  rewrite (words_are_rounded _ _ F) by lia. set (x := IZR (2 ^ 62) * p e) in *.
  generalize (Zfloor_lb (x - 1/2)) (Zfloor_ub (x - 1/2)). intros L U.
  destruct (Z.max_spec 0 (Zfloor (x - 1/2))) as [[_ ->]|[M ->]]; [lra|]. apply IZR_le in M. lra.
Qed.

Lemma lacking_in_all : mean 6 (lacking p t) = IZR (entry_words t 63) / 64.
Proof.
  unfold lacking. rewrite (mean_ext 6 _ (fun e => (IZR (2 ^ 62) * p e + -1 * IZR (entry_words t e))
    + one (63 =? e)%Z * IZR (entry_words t e))).
  - rewrite !mean_plus, !mean_scale, (they_add_up _ _ F), mean_integers, (proj2 (it_is_a_table _ _ F)), mean_picks
      by lia.
    change (IZR (2^ 6)) with 64. field_of_words.
  - intros e _. generalize (IZR (2 ^ 62)). intros T. rewrite (Z.eqb_sym 63). destruct (e =? 63)%Z; unfold one; ring.
Qed.

(* The rest has at most 96 of 2^62 words, whatever the probabilities. *)
Theorem rest_is_rare : (0 <= entry_words t 63 <= 96)%Z.
Proof.
  generalize lacking_in_all. assert (M : 0 <= mean 6 (lacking p t) <= 3/2).
  { split; [rewrite <- (mean_const 6 0)|rewrite <- (mean_const 6 (3/2))]; apply mean_le; apply lacking_is_small. }
  intros E. split; apply le_IZR; lra.
Qed.

(* An entry with the rest has its probability: in the limit of many tries, what follows on the entry that the words
   choose, or on that of the rest, has the mean that it has with the probabilities p. *)
Theorem entries_have_their_probabilities (C : Type) (p_of : C -> R) (c : Z -> C) (follows : nat -> Z -> R) (limit : Z
  -> R) :
  (forall e, (0 <= e < 64)%Z -> p_of (c e) = lacking p t e / 2) ->
  (forall e, (0 <= e < 64)%Z -> is_lim_seq (fun tries => follows tries e) (limit e)) ->
  is_lim_seq (fun tries => mean 6 (fun e => IZR (entry_words t e) / IZR (2 ^ 56) *
      (if (e =? 63)%Z then expected C p_of (rest tries c) (follows tries)
       else follows tries e)))
    (64 * mean 6 (fun e => p e * limit e)).
Proof.
  intros Coin L. set (A := fun e => if (e =? 63)%Z then 0 else IZR (entry_words t e) / IZR (2 ^ 56)).
  set (w := IZR (entry_words t 63)). set (q := fun e => lacking p t e / 2).
  assert (S : mean 6 q = w / 128).
  { unfold q, Rdiv. rewrite mean_scale_right, lacking_in_all. fold w. field. }
  assert (Q : forall e, (0 <= e < 64)%Z -> 0 <= q e <= 3/4).
  { intros e E. unfold q. generalize (lacking_is_small e E). lra. }
  assert (S' : 0 <= mean 6 q <= 3/4).
  { split; [rewrite <- (mean_const 6 0)|rewrite <- (mean_const 6 (3/4))]; apply mean_le; apply Q. }
  assert (Sum : 64 * mean 6 (fun e => p e * limit e) = mean 6 (fun e => A e * limit e)
    + mean 6 (fun e => q e * limit e) * (2 / IZR (2 ^ 56))).
  { rewrite <- mean_scale, <- mean_scale_right, <- mean_plus. apply mean_ext. intros e _.
    unfold A, q, lacking. destruct (e =? 63)%Z; field_of_words; assumption. }
  assert (Split : forall v r, mean 6 (fun e => IZR (entry_words t e) / IZR (2 ^ 56) * (if (e =? 63)%Z then r else v e))
    = mean 6 (fun e => A e * v e) + w / IZR (2 ^ 62) * r).
  { intros v r. rewrite (mean_ext 6 _ (fun e => A e * v e + one (63 =? e)%Z * (IZR (entry_words t e) / IZR (2 ^ 56) *
    r))).
    - rewrite mean_plus, mean_picks by lia. fold w. change (IZR (2^ 6)) with 64. field_of_words. assumption.
    - intros e _. unfold A. rewrite (Z.eqb_sym 63). destruct (e =? 63)%Z; unfold one; ring. }
  rewrite Sum. eapply is_lim_seq_ext; [intros n; symmetry; apply Split|]. apply is_lim_seq_plus'.
  - apply mean_limit. intros e E. apply is_lim_seq_mult'; [apply is_lim_seq_const|apply L, E].
  - destruct (Req_dec w 0) as [Z0|Z0].
    + rewrite Z0 in *. assert (Zero : forall e, (0 <= e < 64)%Z -> q e = 0).
      { intros e E. assert (B : q e / 64 <= mean 6 q); [|generalize (Q e E); lra].
        change 64 with (IZR (2^ 6)). rewrite <- (mean_picks 6 q e E). apply mean_le. intros i I.
        destruct (Z.eqb_spec e i); unfold one; generalize (Q i I); lra. }
      rewrite (mean_ext 6 _ (fun _ => 0)) by (intros e E; rewrite (Zero e E); ring). rewrite mean_const.
      apply (is_lim_seq_ext (fun _ => 0 * (2 / IZR (2 ^ 56)))); [intros n; unfold Rdiv; ring|apply is_lim_seq_const].
    + assert (Pos : 0 < mean 6 q) by lra.
      assert (E1 : mean 6 (fun e => p_of (c e)) = mean 6 q) by (apply mean_ext; exact Coin).
      assert (E2 : forall n, mean 6 (fun e => p_of (c e) * follows n e) = mean 6 (fun e => q e * follows n e)).
      { intros n. apply mean_ext. intros e E. rewrite (Coin e E). reflexivity. }
      apply (is_lim_seq_ext (fun n => w / IZR (2 ^ 62) * ((1 - (1 - mean 6 q) ^ n)
        * (mean 6 (fun e => q e * follows n e) / mean 6 q))));
        [intros n; f_equal; symmetry; unfold rest; rewrite (kept_proposals_are C p_of 6); rewrite ?E1, ?(E2 n); trivial;
          lia|].
      replace (Finite (mean 6 (fun e => q e * limit e) * (2 / IZR (2 ^ 56)))) with
        (Finite (w / IZR (2 ^ 62) * ((1 - 0) * (mean 6 (fun e => q e * limit e) / mean 6 q)))).
      * apply is_lim_seq_mult'; [apply is_lim_seq_const|]. apply is_lim_seq_mult'.
        -- apply is_lim_seq_minus'; [apply is_lim_seq_const|]. apply is_lim_seq_geom. rewrite Rabs_pos_eq; lra.
        -- apply is_lim_seq_mult'; [|apply is_lim_seq_const]. apply mean_limit. intros e E.
           apply is_lim_seq_mult'; [apply is_lim_seq_const|apply L, E].
      * f_equal. rewrite S. field_of_words. split; assumption.
Qed.
End Table.

(* The probability of a magnitude and all larger ones, for a law by the probabilities P of its magnitudes. *)
Definition at_least (P : nat -> R) (x : nat) : R := Series (fun more => P (x + more)%nat).

Section AtLeast.
Variable P : nat -> R.
Hypothesis Positive : forall x, 0 < P x.
Hypothesis Whole : is_series P 1.

Lemma at_least_follows x : at_least P x = P x + at_least P (S x) /\ 0 < at_least P x.
Proof.
  assert (E : forall x, ex_series (fun more => P (x + more)%nat)).
  { intros [|y]; [exists 1; exact Whole|]. apply (ex_series_incr_n P (S y)). exists 1. exact Whole. }
  assert (N : forall x, 0 <= at_least P x).
  { intros y. unfold at_least. rewrite <- (Rmult_0_l (Series (fun more => P (y + more)%nat))), <- Series_scal_l.
    apply Series_le; [|apply E]. intros n. rewrite Rmult_0_l. split; [lra|apply Rlt_le, Positive]. }
  assert (Eq : at_least P x = P x + at_least P (S x)).
  { unfold at_least. rewrite Series_incr_1 by apply E. rewrite Nat.add_0_r. f_equal. apply Series_ext. intros n.
    f_equal. lia. }
  split; [exact Eq|]. rewrite Eq. generalize (N (S x)) (Positive x). lra.
Qed.

Lemma sum_from x n : sum_n (fun e => P (x + e)%nat) n = at_least P x - at_least P (x + S n).
Proof.
  rewrite sum_n_Reals. apply (Rplus_eq_reg_r (at_least P (x + S n))). ring_simplify. induction n as [|n IH]; cbn
    [sum_f_R0].
  - rewrite Nat.add_0_r, Nat.add_1_r, (proj1 (at_least_follows x)). reflexivity.
  - rewrite <- IH, (proj1 (at_least_follows (x + S n))), <- (plus_n_Sm x (S n)). ring.
Qed.

Lemma sum_is_positive x n : 0 < sum_n (fun e => P (x + e)%nat) n.
Proof.
  induction n as [|n IH]; [rewrite sum_O; apply Positive|]. rewrite sum_Sn.
  apply Rplus_lt_0_compat; [exact IH|apply Positive].
Qed.
End AtLeast.

(* A symmetric law by the probabilities P of its magnitudes, on so many pages. Entry e < 63 of a page is a magnitude,
   given the page; what is beyond the pages belongs to entry 63 of their own table. *)
Section Law.
Variables (P : nat -> R) (pages : digit) (tables : list digit).
Let N : nat := length tables.

Definition of_page (page : Z) : R :=
  if (page <? Z.of_nat N)%Z then sum_n (fun e => P (63 * Z.to_nat page + e)%nat) 62
  else if (page =? 63)%Z then at_least P (63 * N) else 0.
Definition of_entry (page e : Z) : R :=
  if (e =? 63)%Z then 0 else P (63 * Z.to_nat page + Z.to_nat e)%nat / of_page page.

Record sound_pages : Prop := SoundPages {
  all_have_some : forall x, 0 < P x;
  all_add_up : is_series P 1;
  pages_in_number : (1 <= N <= 63)%nat;
  pages_fit : fits of_page pages;
  entries_fit : forall page t, nth_error tables page = Some t -> fits (of_entry (Z.of_nat page)) t }.

Definition p_of (c : coin) : R :=
  match c with
  | OfPage page => lacking of_page pages page / 2
  | OfEntry page e => lacking (of_entry page) (nth (Z.to_nat page) tables pages) e / 2
  | Here magnitude => P (Z.to_nat magnitude) / at_least P (Z.to_nat magnitude)
  end.

(* The probability that a number is x, with so many tries for each loop, and exact coins. *)
Definition probability (tries : nat) (x : Z) : R :=
  word_mean (fun first => word_mean (fun second =>
    expected coin p_of (number_of_pages tries pages tables first second) (fun number => one (number =? x)%Z))).

Hypothesis S : sound_pages.

Let follows_on := at_least_follows P (all_have_some S) (all_add_up S).

Lemma of_page_is_positive page : (0 <= page < Z.of_nat N)%Z -> 0 < of_page page.
Proof.
  intros I. unfold of_page. rewrite (proj2 (Z.ltb_lt _ _)) by lia.
  apply (sum_is_positive P (all_have_some S)).
Qed.

Variable x : Z.
Let X : nat := Z.abs_nat x.
Definition half : R := if (x =? 0)%Z then 1 else 1/2.
Let side (negative : bool) : R := if (x =? 0)%Z then 1 else one (Bool.eqb negative (x <? 0)%Z).
Let signed_to (negative : bool) (m : Z) : R := one ((if negative then - m else m) =? x)%Z.

Lemma sides_are_half : (side true + side false) / 2 = half.
Proof. unfold side, half. destruct (x =? 0)%Z, (x <? 0)%Z; unfold one; simpl; lra. Qed.

Lemma sign_is_apart negative m : (0 <= m)%Z -> signed_to negative m = one (m =? Z.of_nat X)%Z * side negative.
Proof.
  unfold signed_to, side, X. rewrite Zabs2Nat.id_abs. clear. intros M.
  destruct negative; [destruct (Z.eqb_spec (- m) x)|destruct (Z.eqb_spec m x)];
    destruct (Z.eqb_spec x 0), (Z.ltb_spec x 0), (Z.eqb_spec m (Z.abs x)); cbv [one Bool.eqb]; lra || lia.
Qed.

(* Beyond the pages: the coins multiply to the conditional probability. *)
Lemma coins_multiply tries : forall y follows c, (forall m, (0 <= m)%Z -> follows m = one (m =? Z.of_nat X)%Z * c) ->
  expected coin p_of (beyond tries (Z.of_nat y)) follows
  = if (y <=? X)%nat && (X <? y + tries)%nat then P X / at_least P y * c else 0.
Proof.
  induction tries as [|tries IH]; intros y follows c H.
  - destruct (Nat.leb_spec y X), (Nat.ltb_spec X (y + 0)); try reflexivity; lia.
  - cbn [beyond expected].
    replace (Z.of_nat y + 1)%Z with (Z.of_nat (Datatypes.S y)) by lia. rewrite (IH _ _ _ H), H by lia. cbn [p_of].
    rewrite Nat2Z.id. destruct (follows_on y) as [A B]. destruct (follows_on (Datatypes.S y)) as [_ C].
    destruct (Z.eqb_spec (Z.of_nat y) (Z.of_nat X)) as [E|E], (Nat.leb_spec (Datatypes.S y) X),
      (Nat.ltb_spec X (Datatypes.S y + tries)), (Nat.leb_spec y X), (Nat.ltb_spec X (y + Datatypes.S tries)); try lia;
      unfold one; cbn [andb]; try (apply Nat2Z.inj in E; rewrite E in *); try ring.
    rewrite A. rewrite A in B. field. lra.
Qed.

Lemma words_and_programs (p : program coin Z) g :
  word_mean (fun w => expected coin p_of p (g w)) = expected coin p_of p (fun found => word_mean (fun w => g w found)).
Proof.
  unfold word_mean. rewrite expected_of_mean. apply mean_ext. intros head _. symmetry. apply expected_of_mean.
Qed.

Lemma mean_of_sign g : word_mean (fun w => g (Z.testbit (snd w) 7)) = (g true + g false) / 2.
Proof.
  generalize (it_is_a_table _ _ (pages_fit S)). intros T. rewrite (mean_of_entry pages (fun _ => g) T).
  rewrite mean_scale_right. unfold Rdiv at 1. rewrite mean_scale_right, mean_integers, (proj2 T).
  change (IZR (2^ 6)) with 64. field_of_words. assumption.
Qed.

(* The mean over the second word of what follows once the page is known. *)
Let in_page (tries : nat) (page : Z) (second : Z * Z) : R :=
  expected coin p_of (if (page =? 63)%Z then beyond tries (63 * Z.of_nat N)
    else with_entry tries page (entry_in tables page second)) (fun m => one (signed_by second m =? x)%Z).
Let page_of_x : Z := if (X <? 63 * N)%nat then Z.of_nat (X / 63) else 63.
Let limit_in (page : Z) : R :=
  if (page =? 63)%Z then (if (63 * N <=? X)%nat then P X / at_least P (63 * N) * half else 0)
  else if (page <? Z.of_nat N)%Z then one (page_of_x =? page)%Z * (P X / of_page page * half)
  else word_mean (fun second => one (signed_by second (63 * page) =? x)%Z).

Lemma given_the_page page : (0 <= page < 64)%Z ->
  is_lim_seq (fun tries => word_mean (in_page tries page)) (limit_in page).
Proof.
  intros I. unfold limit_in, in_page. destruct (Z.eqb_spec page 63) as [->|N63].
  { apply (is_lim_seq_ext_loc (fun _ => if (63 * N <=? X)%nat then P X / at_least P (63 * N) * half else 0));
      [|apply is_lim_seq_const].
    exists (Datatypes.S X). intros n Hn. rewrite <- sides_are_half.
    set (half_of := fun b => if (63 * N <=? X)%nat then P X / at_least P (63 * N) * side b else 0).
    transitivity (word_mean (fun w => half_of (Z.testbit (snd w) 7))).
    - rewrite mean_of_sign. unfold half_of. destruct (_ <=? _)%nat; field. apply Rgt_not_eq, (proj2 (follows_on (63 *
      N))).
    - apply words_ext. intros w. unfold half_of. replace (63 * Z.of_nat N)%Z with (Z.of_nat (63 * N)) by lia.
      rewrite (coins_multiply n (63 * N) _ (side (Z.testbit (snd w) 7))).
      + rewrite (proj2 (Nat.ltb_lt X (63 * N + n))) by lia. rewrite andb_true_r. reflexivity.
      + intros m M. exact (sign_is_apart _ m M). }
  destruct (Z.ltb_spec page (Z.of_nat N)) as [L|L].
  - destruct (nth_error tables (Z.to_nat page)) as [t|] eqn:E; [|apply nth_error_None in E; fold N in E; lia].
    generalize (entries_fit S _ _ E). rewrite Z2Nat.id by lia. intros F.
    set (drawn := fun (n : nat) (negative : bool) => mean 6 (fun e => IZR (entry_words t e) / IZR (2 ^ 56) *
      (if (e =? 63)%Z then expected coin p_of (rest n (OfEntry page)) (fun e => signed_to negative (63 * page + e))
       else signed_to negative (63 * page + e)))).
    apply (is_lim_seq_ext (fun n => (drawn n true + drawn n false) / 2)).
    { intros n. unfold drawn. unfold Rdiv at 1. rewrite <- mean_plus, <- mean_scale_right.
      transitivity (word_mean (fun word => (fun e negative => if (e =? 63)%Z
        then expected coin p_of (rest n (OfEntry page)) (fun e => signed_to negative (63 * page + e)) else signed_to
          negative (63 * page + e))
        (entry_of t (fst word) (snd word)) (Z.testbit (snd word) 7))).
      - rewrite (mean_of_entry t (fun e negative => if (e =? 63)%Z
          then expected coin p_of (rest n (OfEntry page)) (fun e => signed_to negative (63 * page + e)) else signed_to
            negative (63 * page + e)))
          by apply (it_is_a_table _ _ F).
        apply mean_ext. intros e _. field_of_words. assumption.
      - apply words_ext. intros word. cbv beta. rewrite entry_in_is, E by lia. unfold with_entry.
        cbv iota. rewrite expected_then. destruct (entry_of t _ _ =? 63)%Z; reflexivity. }
    assert (Each : forall negative, is_lim_seq (fun n => drawn n negative)
      (one (page_of_x =? page)%Z * (P X / of_page page * side negative))).
    { intros negative. replace (one (page_of_x =? page)%Z * (P X / of_page page * side negative)) with
        (64 * mean 6 (fun e => of_entry page e * signed_to negative (63 * page + e))).
      - apply (entries_have_their_probabilities _ _ F coin p_of (OfEntry page) (fun _ e => signed_to negative (63 *
        page + e))).
        + intros e _. cbn [p_of]. rewrite (nth_error_nth _ _ pages E). reflexivity.
        + intros e _. apply is_lim_seq_const.
      - rewrite (mean_ext 6 _ (fun e => one (Z.of_nat (X mod 63) =? e)%Z * (one (page_of_x =? page)%Z * (P X / of_page
        page
          * side negative)))).
        + generalize (Nat.mod_upper_bound X 63 ltac:(lia)). intros M.
          rewrite mean_picks by (change (2^ 6) with 64%Z; lia). change (IZR (2^ 6)) with 64. field.
          apply Rgt_not_eq, of_page_is_positive. lia.
        + intros e He. change (2^ 6) with 64%Z in He. rewrite sign_is_apart by lia.
          generalize (Nat.div_mod X 63 ltac:(lia)) (Nat.mod_upper_bound X 63 ltac:(lia)). intros D M.
          unfold of_entry, page_of_x. destruct (Nat.ltb_spec X (63 * N)),
            (Z.eqb_spec e 63), (Z.eqb_spec (Z.of_nat (X mod 63)) e), (Z.eqb_spec (63 * page + e) (Z.of_nat X));
            try lia; try (destruct (Z.eqb_spec (Z.of_nat (X / 63)) page)); try (destruct (Z.eqb_spec 63 page)); try lia;
            unfold one; try ring.
          replace (63 * Z.to_nat page + Z.to_nat e)%nat with X by lia. ring. }
    replace (Finite (one (page_of_x =? page)%Z * (P X / of_page page * half))) with (Finite
      ((one (page_of_x =? page)%Z * (P X / of_page page * side true) + one (page_of_x =? page)%Z * (P X / of_page page
        * side false)) / 2)).
    + apply is_lim_seq_mult'; [|apply is_lim_seq_const]. apply is_lim_seq_plus'; apply Each.
    + rewrite <- sides_are_half. f_equal. field. apply Rgt_not_eq, of_page_is_positive. lia.
  - apply (is_lim_seq_ext (fun _ => word_mean (fun second => one (signed_by second (63 * page) =? x)%Z)));
      [|apply is_lim_seq_const].
    intros n. apply words_ext. intros second. rewrite entry_in_is by lia.
    rewrite (proj2 (nth_error_None tables (Z.to_nat page))) by (fold N; lia). unfold with_entry.
    change (0 =? 63)%Z with false. cbv iota. cbn [and_then expected]. rewrite Z.add_0_r. reflexivity.
Qed.

Theorem pages_are_exact_at : is_lim_seq (fun tries => probability tries x) (P X * half).
Proof.
  apply (is_lim_seq_ext (fun tries => mean 6 (fun page => IZR (entry_words pages page) / IZR (2 ^ 56) *
    (if (page =? 63)%Z then expected coin p_of (rest tries OfPage) (fun page => word_mean (in_page tries page))
     else word_mean (in_page tries page))))).
  - intros n. unfold probability.
    transitivity (word_mean (fun first => (fun page (_ : bool) => if (page =? 63)%Z
      then expected coin p_of (rest n OfPage) (fun page => word_mean (in_page n page)) else word_mean (in_page n page))
      (entry_of pages (fst first) (snd first)) (Z.testbit (snd first) 7))).
    + rewrite (mean_of_entry pages (fun page (_ : bool) => if (page =? 63)%Z
        then expected coin p_of (rest n OfPage) (fun page => word_mean (in_page n page)) else word_mean (in_page n
          page)))
        by apply (it_is_a_table _ _ (pages_fit S)).
      apply mean_ext. intros page _. field_of_words. assumption.
    + apply words_ext. intros first. cbv beta. unfold number_of_pages, run_pages. cbv zeta.
      set (page := entry_of pages (fst first) (snd first)). destruct (Z.eqb_spec page 63) as [->|P63].
      * transitivity (word_mean (fun second => expected coin p_of (rest n OfPage) (fun page => in_page n page second)));
          [symmetry; apply words_and_programs|apply words_ext; intros second; unfold resolved; rewrite Z.eqb_refl; cbn
            [orb]; rewrite !expected_then; reflexivity].
      * apply words_ext. intros second. unfold in_page. rewrite (proj2 (Z.eqb_neq page 63) P63). cbn [orb].
        unfold resolved. rewrite (proj2 (Z.eqb_neq page 63) P63). unfold with_entry.
        destruct (entry_in tables page second =? 63)%Z; rewrite !expected_then; reflexivity.
  - replace (Finite (P X * half)) with (Finite (64 * mean 6 (fun page => of_page page * limit_in page))).
    + apply (entries_have_their_probabilities _ _ (pages_fit S)); [reflexivity|exact given_the_page].
    + f_equal. generalize (pages_in_number S). intros NN.
      generalize (Nat.div_mod X 63 ltac:(lia)) (Nat.mod_upper_bound X 63 ltac:(lia)). intros D M.
      rewrite (mean_ext 6 _ (fun page => one (page_of_x =? page)%Z * (P X * half))).
      * rewrite mean_picks by (change (2^ 6) with 64%Z; unfold page_of_x; destruct (Nat.ltb_spec X (63 * N)); lia).
        change (IZR (2^ 6)) with 64. field.
      * intros page I. change (2^ 6) with 64%Z in I. unfold limit_in.
        destruct (Z.eqb_spec page 63) as [->|P63]; [|destruct (Z.ltb_spec page (Z.of_nat N)) as [L|L]].
        -- unfold of_page, page_of_x. rewrite (proj2 (Z.ltb_ge 63 (Z.of_nat N))), Z.eqb_refl by lia.
           generalize (proj2 (follows_on (63 * N))). intros A.
           destruct (Nat.ltb_spec X (63 * N)), (Nat.leb_spec (63 * N) X); try lia.
           ++ destruct (Z.eqb_spec (Z.of_nat (X / 63)) 63); [lia|]. unfold one. ring.
           ++ rewrite Z.eqb_refl. unfold one. field. lra.
        -- generalize (of_page_is_positive page ltac:(lia)). intros A. field. lra.
        -- unfold of_page at 1. rewrite (proj2 (Z.ltb_ge page (Z.of_nat N))), (proj2 (Z.eqb_neq page 63)) by lia.
           unfold page_of_x. destruct (Nat.ltb_spec X (63 * N)).
           ++ destruct (Z.eqb_spec (Z.of_nat (X / 63)) page); [lia|]. unfold one. ring.
           ++ destruct (Z.eqb_spec 63 page); [lia|]. unfold one. ring.
Qed.

(* The coins that are thrown, and that bounds of them hold at each precision. *)
Definition thrown (c : coin) : Prop :=
  match c with
  | OfPage page => (0 <= page < 64)%Z
  | OfEntry page e => (0 <= page < Z.of_nat N)%Z /\ (0 <= e < 64)%Z
  | Here magnitude => (0 <= magnitude)%Z
  end.
Definition bounded (bounds : coin -> Z -> Z * Z) : Prop :=
  forall c, thrown c -> between (IZR (weight c) * p_of c) (bounds c).

Variable bounds : coin -> Z -> Z * Z.
Hypothesis B : bounded bounds.
Notation right := (exact coin p_of (sides_of bounds)).

Lemma coins_are_right c : thrown c -> right c.
Proof.
  intros T. exists (IZR (weight c)), (IZR (weight c) * p_of c). assert (W : 0 < IZR (weight c)) by (apply IZR_lt;
    destruct c; reflexivity).
  split; [exact W|]. split; [field; lra|]. split.
  - destruct c as [page|page e|magnitude]; cbn [p_of thrown] in *.
    + generalize (lacking_is_small _ _ (pages_fit S) page T). lra.
    + destruct T as [L E]. destruct (nth_error tables (Z.to_nat page)) as [t|] eqn:I;
        [|apply nth_error_None in I; fold N in I; lia].
      generalize (entries_fit S _ _ I). rewrite Z2Nat.id, (nth_error_nth _ _ pages I) by lia. intros F.
      generalize (lacking_is_small _ _ F e E). lra.
    + destruct (follows_on (Z.to_nat magnitude)) as [A Pos]. generalize (all_have_some S (Z.to_nat magnitude)).
      destruct (follows_on (Datatypes.S (Z.to_nat magnitude))) as [_ More]. intros Own.
      split; [apply Rdiv_le_0_compat; lra|]. apply Rle_div_l; lra.
  - intros limbs L. unfold sides_of. generalize (B c T limbs ltac:(lia)). destruct (bounds c limbs) as [low high]. cbn [fst snd].
    intros H. assert (U : (0 < unit limbs)%Z) by (apply Z.pow_pos_nonneg; lia). split; [destruct c; cbn [weight]; lia|].
    rewrite mult_IZR. split; [lra|]. split; [exact H|]. intros _. exists (weight c * 2 ^ 129)%Z. ring.
Qed.

Lemma draws_are_right tries first second :
  keeps_to coin right (fun _ => True) (number_of_pages tries pages tables first second).
Proof.
  assert (Rest : forall c, (forall e, (0 <= e < 64)%Z -> thrown (c e)) ->
    keeps_to coin right (fun e => 0 <= e < 64)%Z (rest tries c)).
  { intros c T. apply keeps_to_until, (keeps_to_proposal coin right 6 c); [lia|]. intros e E. apply coins_are_right, T,
    E. }
  assert (Beyond : forall n m, (0 <= m)%Z -> keeps_to coin right (fun _ => True) (beyond n m)).
  { induction n as [|n IH]; intros m M; [exact I|]. split; [apply coins_are_right, M|]. intros [|]; [exact I|].
    apply IH. lia. }
  assert (Entry : forall page entry, (0 <= page < Z.of_nat N)%Z \/ entry <> 63%Z ->
    keeps_to coin right (fun _ => True) (with_entry tries page entry)).
  { intros page entry E. unfold with_entry. destruct (Z.eqb_spec entry 63) as [->|N63]; [|exact I].
    apply (keeps_to_then coin right (fun e => 0 <= e < 64)%Z); [|intros; exact I]. apply Rest. intros e He.
    split; [destruct E; [assumption|lia]|exact He]. }
  assert (In : forall page second, (0 <= page < 64)%Z -> (0 <= page < Z.of_nat N)%Z \/ entry_in tables page second <>
    63%Z).
  { intros page second' L. rewrite entry_in_is by lia. destruct (nth_error tables (Z.to_nat page)) eqn:E; [|right; lia].
    left. assert (Z.to_nat page < length tables)%nat by (apply nth_error_Some; rewrite E; discriminate). unfold N. lia.
      }
  unfold number_of_pages, run_pages. cbv zeta. generalize (entry_range pages (fst first) (snd first)
    (it_is_a_table _ _ (pages_fit S))). set (page := entry_of _ _ _). intros Range.
  destruct ((page =? 63)%Z || _); [|exact I]. apply (keeps_to_then coin right (fun _ => True)); [|intros; exact I].
  unfold resolved. destruct (page =? 63)%Z; [|apply Entry, In, Range].
  apply (keeps_to_then coin right (fun e => 0 <= e < 64)%Z); [apply Rest; intros e E; exact E|]. intros drawn D.
  destruct (drawn =? 63)%Z; [apply Beyond; lia|apply Entry, In, D].
Qed.

Lemma word_mean_le g h : (forall w, g w <= h w) -> word_mean g <= word_mean h.
Proof. intros L. apply mean_le. intros head _. apply mean_le. intros fraction _. apply L. Qed.

(* On uniform words, the two that choose and n further ones, a number is x with at most its probability, and short of it
   by at most the probability that words, tries or the steps of a comparison do not suffice. *)
Definition on_words (tries n : nat) (otherwise : R) : R :=
  word_mean (fun first => word_mean (fun second => mean_of_words n (fun words =>
    of_found (fun number => one (number =? x)%Z) otherwise
      (run (sides_of bounds) (number_of_pages tries pages tables first second) words)))).

Theorem words_give_numbers tries n : on_words tries n 0 <= probability tries x <= on_words tries n 1.
Proof.
  assert (K : forall first second, let p := number_of_pages tries pages tables first second in
    let g := fun number => one (number =? x)%Z in
    mean_of_words n (fun words => of_found g 0 (run (sides_of bounds) p words)) <= expected coin p_of p g
    <= mean_of_words n (fun words => of_found g 1 (run (sides_of bounds) p words))).
  { intros first second p g. apply words_follow_coins; [apply draws_are_right|]. intros number. unfold g, one. cbv beta.
    destruct (number =? x)%Z; lra. }
  split; apply word_mean_le; intros first; apply word_mean_le; intros second; apply K.
Qed.
End Law.

(* Probabilities of pages and entries always add up. *)
Section AddUp.
Variables (P : nat -> R) (tables : list digit).
Hypothesis Positive : forall x, 0 < P x.
Hypothesis Whole : is_series P 1.
Hypothesis Number : (1 <= length tables <= 63)%nat.

Lemma pages_from_at_least page : (page < length tables)%nat ->
  of_page P tables (Z.of_nat page) = at_least P (63 * page) - at_least P (63 * page + 63).
Proof.
  intros L. unfold of_page. rewrite (proj2 (Z.ltb_lt _ _)), Nat2Z.id by lia.
  exact (sum_from P Positive Whole (63 * page) 62).
Qed.

Lemma pages_add_up : mean 6 (of_page P tables) = 1/64.
Proof.
  set (N := length tables). rewrite mean_is_sum, sum_n_Reals.
  assert (Start : at_least P 0 = 1) by (apply is_series_unique; exact Whole).
  assert (First : forall n, (n < N)%nat -> sum_f_R0 (fun e => of_page P tables (Z.of_nat e)) n = 1 - at_least P (63 * n
    + 63)).
  { induction n as [|n IH]; intros L.
    - cbn [sum_f_R0]. rewrite pages_from_at_least, Nat.mul_0_r, Start by exact L. reflexivity.
    - rewrite tech5, IH, pages_from_at_least by lia.
      replace (63 * n + 63)%nat with (63 * S n)%nat by lia. ring. }
  assert (Then : forall n, (n < 63)%nat -> (N <= S n)%nat -> sum_f_R0 (fun e => of_page P tables (Z.of_nat e)) n
    = 1 - at_least P (63 * N)).
  { induction n as [|n IH]; intros L G.
    - rewrite First by (unfold N in *; lia). do 2 f_equal. unfold N in *. lia.
    - destruct (Nat.eq_dec N (S (S n))) as [E|E].
      + rewrite First by lia. do 2 f_equal. lia.
      + rewrite tech5, IH by lia. unfold of_page. rewrite (proj2 (Z.ltb_ge _ _)) by (fold N; lia).
        rewrite (proj2 (Z.eqb_neq _ 63)) by lia. ring. }
  rewrite tech5, Then by (unfold N in *; lia). unfold of_page. fold N. change (Z.of_nat 63) with 63%Z.
  rewrite (proj2 (Z.ltb_ge _ _)), Z.eqb_refl by lia. lra.
Qed.

Lemma entries_add_up page : (page < length tables)%nat -> mean 6 (of_entry P tables (Z.of_nat page)) = 1/64.
Proof.
  intros L. rewrite mean_is_sum, sum_Sn. unfold of_entry at 2. change (Z.of_nat 63 =? 63)%Z with true. cbv iota.
  rewrite (sum_n_ext_loc _ (fun e => / of_page P tables (Z.of_nat page) * P (63 * page + e)%nat)).
  - rewrite (sum_n_mult_l (K := R_Ring)), (sum_from P Positive Whole). change (S 62) with 63%nat.
    rewrite <- pages_from_at_least by exact L.
    assert (0 < of_page P tables (Z.of_nat page)).
    { rewrite pages_from_at_least, <- (sum_from P Positive Whole (63 * page) 62) by exact L.
      apply sum_is_positive, Positive. }
    change plus with Rplus. change mult with Rmult. rewrite Rplus_0_r, Rinv_l; lra.
  - intros e E. unfold of_entry. rewrite (proj2 (Z.eqb_neq (Z.of_nat e) 63)), !Nat2Z.id by lia. apply Rmult_comm.
Qed.
End AddUp.

(* In the limit of many tries each number has exactly its probability: that of its magnitude, and half of it for each
   sign but of zero. *)
Theorem pages_are_exact P pages tables x : sound_pages P pages tables ->
  is_lim_seq (fun tries => probability P pages tables tries x)
    (P (Z.abs_nat x) * (if (x =? 0)%Z then 1 else 1/2)).
Proof. intros S. exact (pages_are_exact_at P pages tables S x). Qed.
