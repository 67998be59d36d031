(* Numbers by digits are exact: the words of all digits, what entries 63 stand for, and the sign. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Dpnoise Require Import Decide Fixed Model Words Sound Values Integers Refine Programs Tail Rest Alias Entries
  Digits.
Import ListNotations.
Open Scope R_scope.
(* Means over 56 and 64 bits are not to be computed. *)
Local Opaque mean.

(* The mean over the words of digits, a fraction and a byte for each. *)
Fixpoint mean_of_digits (digits : list digit) (g : list (Z * Z) -> R) : R :=
  match digits with
  | [] => g []
  | _ :: digits => mean 8 (fun head => mean 56 (fun fraction =>
      mean_of_digits digits (fun words => g ((fraction, head) :: words))))
  end.

(* The probability that a number is x where coins are exact and each loop makes `fuel` attempts; that of n uniform words
   of 64 bits after the digits' words, where numbers that these do not suffice for count as x or do not. *)
Definition chance (l : law) (digits : list digit) (fuel : nat) (x : Z) : R :=
  mean_of_digits digits (fun words =>
    expected coin (p_of l) (number_drawn l fuel digits words) (fun found => one (found =? x)%Z)).
Definition chance_on_words (l : law) (sides : coin -> Z -> (Z * Z) * (Z * Z)) (digits : list digit) (fuel n : nat) (x :
  Z)
    (short : R) : R :=
  mean_of_digits digits (fun words => mean_of_words n (fun more =>
    of_found (fun found => one (found =? x)%Z) short (run sides (number_drawn l fuel digits words) more))).

(* The sum of f over the values of one magnitude, and over all values. *)
Definition mass_of (l : law) (a : nat) : R := (if two_sided l && (0 <? a)%nat then 2 else 1) * density l (Z.of_nat a).
Definition total_of (l : law) : R := Series (mass_of l).

(* Means may be exchanged. *)
Lemma mean_of_digits_ext ds : forall g h, (forall words, g words = h words) -> mean_of_digits ds g = mean_of_digits ds
  h.
Proof.
  induction ds as [|d ds IH]; intros g h E; [apply E|]. cbn [mean_of_digits]. apply mean_ext. intros head _. apply
    mean_ext.
  intros fraction _. apply IH. intros. apply E.
Qed.

Lemma mean_of_digits_le ds : forall g h, (forall words, g words <= h words) -> mean_of_digits ds g <= mean_of_digits ds
  h.
Proof.
  induction ds as [|d ds IH]; intros g h E; [apply E|]. cbn [mean_of_digits]. apply mean_le. intros head _. apply
    mean_le.
  intros fraction _. apply IH. intros. apply E.
Qed.

Lemma expected_of_digits {A : Type} l (p : program coin A) ds : forall G,
  expected coin (p_of l) p (fun found => mean_of_digits ds (fun words => G words found))
  = mean_of_digits ds (fun words => expected coin (p_of l) p (G words)).
Proof.
  induction ds as [|d ds IH]; intros G; [reflexivity|]. cbn [mean_of_digits].
  rewrite expected_of_mean. apply mean_ext. intros head _. rewrite expected_of_mean. apply mean_ext. intros fraction _.
  apply (IH (fun words => G ((fraction, head) :: words))).
Qed.

Definition is_last (ds : list digit) : bool := match ds with [] => true | _ => false end.
Inductive sound_chain (l : law) : bool -> Z -> list digit -> Prop :=
  | chain_ends signs next : sound_chain l signs next []
  | chain_of d ds : sound_digit l d (is_last ds) = true -> sound_rest l d (is_last ds) = true ->
      sound_chain l false (step d * if signed d then 62 else 63) ds -> sound_chain l (signed d) (step d) (d :: ds).

Lemma sound_chain_of l ds : forall signs next, sound_from l signs next ds = true -> sound_chain l signs next ds /\ ds
  <> [].
Proof.
  induction ds as [|d ds IH]; intros signs next H; [discriminate|]. cbn [sound_from] in H. fold (is_last ds) in H.
  rewrite !andb_true_iff in H. destruct H as [[[[St Sg] Sd] Sr] More]. apply Z.eqb_eq in St. apply eqb_prop in Sg.
    subst.
  split; [|discriminate]. constructor; trivial.
  destruct ds as [|d' ds]; [constructor|]. apply IH, More.
Qed.

Section Numbers.
Variable l : law.
Hypothesis Numerator : (1 <= numerator l)%Z.
Hypothesis Denominator : (1 <= denominator l)%Z.

(* That the digits behind the first one of a signed number, or all of another, come to m. *)
Definition magnitude_is (fuel : nat) (ds : list digit) (negative : bool) (m : Z) : R :=
  mean_of_digits ds (fun words => expected coin (p_of l)
    (magnitude l fuel ds (map Z.abs (draw ds words negative true))) (fun found => one (found =? m)%Z)).

Lemma magnitude_step fuel d ds negative m : signed d = false -> sound_digit l d (is_last ds) = true ->
  sound_rest l d (is_last ds) = true -> (1 <= step d)%Z ->
  magnitude_is fuel (d :: ds) negative m
  = drawn_digit d (fun entry _ => expected coin (p_of l) (resolve_entry l fuel d (is_last ds) entry)
      (fun e => magnitude_is fuel ds negative (m - e * step d))).
Proof.
  intros U S Rs St. destruct (sound_facts_of_digit l d (is_last ds) Numerator Denominator St S Rs) as [_ [_ [_ [_
    [Range _]]]]].
  unfold magnitude_is, drawn_digit. cbn [mean_of_digits]. apply mean_ext. intros head _. apply mean_ext. intros
    fraction _.
  rewrite expected_of_digits. apply mean_of_digits_ext. intros words. specialize (Range fraction head).
  cbn [draw map]. rewrite U. cbv beta zeta.
  replace (Z.abs (if negative then - entry_of d fraction head else entry_of d fraction head)) with (entry_of d fraction
    head)
    by (destruct negative; lia).
  cbn [magnitude]. fold (is_last ds). rewrite expected_then. apply (expected_ext coin (p_of l) (fun _ => True) (fun _
    => True));
    [apply keeps_to_all|]. intros e _. rewrite U. cbn [andb]. rewrite expected_then.
  apply (expected_ext coin (p_of l) (fun _ => True) (fun _ => True)); [apply keeps_to_all|]. intros more _. cbn
    [expected].
  f_equal. destruct (Z.eqb_spec (e * step d + more) m), (Z.eqb_spec more (m - e * step d)); lia.
Qed.

(* It is nothing that is negative or between their steps. *)
Lemma nothing_between fuel negative : forall ds signs next, sound_chain l signs next ds -> signs = false -> (1 <=
  next)%Z ->
  forall m, ~ ((0 <= m)%Z /\ (next | m)%Z) -> magnitude_is fuel ds negative m = 0.
Proof.
  intros ds signs next C. induction C as [signs next|d ds S Rs C IH]; intros U P m N.
  - unfold magnitude_is. cbn. destruct m; try reflexivity. exfalso. apply N. split; [lia|exists 0%Z; ring].
  - rewrite magnitude_step by trivial. rewrite U in *. unfold drawn_digit.
    destruct (sound_facts_of_digit l d (is_last ds) Numerator Denominator P S Rs) as [_ [_ [_ [_ [Range _]]]]].
    rewrite (mean_ext 8 _ (fun _ => 0)); [apply mean_const|]. intros head _.
    rewrite (mean_ext 56 _ (fun _ => 0)); [apply mean_const|]. intros fraction _.
    rewrite (expected_ext coin (p_of l) (fun _ => True) (fun e => 0 <= e)%Z _ _ (fun _ => 0 * 0 + 0 * 0)).
    + rewrite expected_linear. ring.
    + apply keeps_to_entry; trivial. apply Range.
    + intros e E. rewrite IH; [ring|reflexivity|lia|]. intros [A [j B]]. apply N. split; [nia|].
      exists (e + j * 63)%Z. lia.
Qed.

(* The probabilities of entries, also from 63 on. *)
Lemma law_of_an_exponential d last e : gaussian l = false -> (1 <= step d)%Z -> sound_digit l d last = true ->
  sound_rest l d last = true -> (0 <= e)%Z -> (last = false -> (e < 63)%Z) ->
  entry_law l d last e = exponential_share l d last e.
Proof.
  intros G St S Rs E L. unfold entry_law. destruct (Z.ltb_spec e 63) as [Lt|Ge].
  - apply of_an_exponential; trivial.
  - destruct last; [|specialize (L eq_refl); lia]. rewrite (proj2 (Z.eqb_neq e 0)), andb_false_r by lia. cbv zeta.
    set (r := p_of_tail l (Decay (63 * step d) (step d))).
    assert (R : r = density l (step d)) by (unfold r; cbn [p_of_tail]; rewrite density_is_power, G; reflexivity).
    assert (B : forall i, beyond_law l d i = r ^ i * (1 - r))
      by (intros i; unfold beyond_law; fold r; cbn [p_of_tail]; rewrite G; ring).
    assert (Sum : Series (beyond_law l d) = 1).
    { apply is_series_unique, (is_series_ext (fun i => r ^ i * (1 - r))); [intros; symmetry; apply B|].
      apply geometric_is; trivial. }
    rewrite Sum, B, R. unfold at_least. rewrite G. change (63 =? 0)%Z with false. cbv iota.
    assert (P : forall n, density l (63 * step d) * density l (step d) ^ n = density l ((63 + Z.of_nat n) * step d)).
    { induction n as [|n IH]; [simpl pow; rewrite Z.add_0_r; ring|].
      replace ((63 + Z.of_nat (Datatypes.S n)) * step d)%Z with ((63 + Z.of_nat n) * step d + step d)%Z by lia.
      rewrite density_plus, <- IH by exact G. simpl. ring. }
    specialize (P (Z.to_nat (e - 63))). rewrite Z2Nat.id in P by lia. replace (63 + (e - 63))%Z with e in P by ring.
    rewrite <- P. generalize (density_range l Numerator Denominator (step d) ltac:(lia)). intros Q.
    destruct (signed d); field; lra.
Qed.

Lemma law_of_a_gaussian d last e : gaussian l = true -> sound_digit l d last = true -> sound_rest l d last = true ->
  (0 <= e)%Z -> step d = 1%Z -> entry_law l d last e = IZR (if e =? 0 then 1 else 2)%Z * density l e / whole_sum l.
Proof.
  intros G S Rs E St. unfold entry_law. destruct (Z.ltb_spec e 63) as [Lt|Ge].
  - apply of_a_gaussian; trivial.
  - rewrite (proj2 (Z.eqb_neq e 0)) by lia. assert (St' : (1 <= step d)%Z) by lia.
    set (r := p_of_tail l (Decay (63 * step d) (step d))). generalize (r_range l d Numerator Denominator St'). fold r.
      intros R.
    assert (F : 0 < density l 63) by apply exp_pos.
    assert (P : forall n, density l 63 * (r ^ n * density l (Z.of_nat n)) = density l (63 + Z.of_nat n)).
    { intros n. unfold r. cbn [p_of_tail]. rewrite exp_pow, !density_is_power, G, St, <- !exp_plus. f_equal.
      rewrite INR_IZR_INZ, !mult_IZR, plus_IZR. ring. }
    assert (B : forall i, beyond_law l d i = (1 - r) / density l 63 * after l 62 i).
    { intros i. unfold beyond_law. fold r. cbn [p_of_tail]. rewrite G. unfold after.
      replace (Z.of_nat (62 + i) + 1)%Z with (63 + Z.of_nat i)%Z by lia. rewrite <- P. field. lra. }
    generalize (beyond_is_positive l d Numerator Denominator St'). fold r.
    rewrite (Series_ext _ _ B), Series_scal_l, B. intros Positive. unfold at_least. rewrite G.
    change (63 =? 0)%Z with false. cbv iota. change (Z.to_nat (63 - 1)) with 62%nat.
    replace (after l 62 (Z.to_nat (e - 63))) with (density l e) by (unfold after; f_equal; lia).
    generalize (whole_sum_positive l Numerator Denominator G). intros W.
    field. repeat split; try lra. intros Z0. rewrite Z0, Rmult_0_r in Positive. lra.
Qed.

(* The law of digits without signs: (1 - q) q^m where m is a multiple of their first step; without digits it is 0. *)
Definition law_of_digits (ds : list digit) (next m : Z) : R :=
  match ds with
  | [] => one (m =? 0)%Z
  | _ => if (0 <=? m)%Z && (m mod next =? 0)%Z then (1 - density l next) * density l m else 0
  end.

Lemma magnitude_limit negative : gaussian l = false -> forall ds signs next, sound_chain l signs next ds -> signs =
  false ->
  (1 <= next)%Z -> forall m, is_lim_seq (fun n => magnitude_is n ds negative m) (law_of_digits ds next m).
Proof.
  intros G ds signs next C. induction C as [signs next|d ds S Rs C IH]; intros U P m.
  - apply (is_lim_seq_ext (fun _ => one (m =? 0)%Z)); [|apply is_lim_seq_const]. intros n. unfold magnitude_is. cbn.
    rewrite Z.eqb_sym. reflexivity.
  - cbn [law_of_digits]. set (s := step d) in *.
    assert (Chain : sound_chain l false s (d :: ds)) by (unfold s; rewrite <- U; constructor; trivial).
    destruct ((0 <=? m) && (m mod s =? 0))%Z eqn:M.
    2: { apply (is_lim_seq_ext (fun _ => 0)); [|apply is_lim_seq_const]. intros n. symmetry.
      apply (nothing_between n negative (d :: ds) false s Chain eq_refl P). intros [A D].
      apply Z.mod_divide in D; [|lia]. rewrite D, (proj2 (Z.leb_le 0 m) A) in M. discriminate. }
    apply andb_true_iff in M. destruct M as [M0 M1]. apply Z.leb_le in M0. apply Z.eqb_eq in M1.
    set (j := (m / s)%Z). assert (J : m = (j * s)%Z) by (unfold j; rewrite (Z.div_mod m s) at 1 by lia; lia).
    assert (J0 : (0 <= j)%Z) by (apply Z.div_pos; lia). clearbody j.
    apply (is_lim_seq_ext (fun n => drawn_digit d (fun entry b => expected coin (p_of l) (resolve_entry l n d (is_last
      ds) entry)
      (fun e => magnitude_is n ds negative (m - e * s))))).
    { intros n. symmetry. apply magnitude_step; trivial. }
    rewrite U in C, IH. specialize (IH eq_refl ltac:(lia)).
    set (k := if is_last ds then j else (j mod 63)%Z).
    assert (K : (0 <= k)%Z /\ (is_last ds = false -> (k < 63)%Z)).
    { unfold k. destruct (is_last ds); [split; [lia|discriminate]|]. generalize (Z.mod_pos_bound j 63). lia. }
    replace ((1 - density l s) * density l m)
      with (1 / 2 * (entry_law l d (is_last ds) k * law_of_digits ds (s * 63) (m - k * s))
        + 1 / 2 * (entry_law l d (is_last ds) k * law_of_digits ds (s * 63) (m - k * s))).
    + apply (digit_limit l d (is_last ds) Numerator Denominator P S Rs (fun n _ e => magnitude_is n ds negative (m - e
      * s))
        (fun _ => k) (fun n _ => magnitude_is n ds negative (m - k * s)) (fun _ => law_of_digits ds (s * 63) (m - k *
          s)));
        [intros _; exact K| |intros _; apply IH].
      intros n _ e E E'. destruct (Z.eqb_spec e k) as [->|N]; cbn [one]; [ring|]. rewrite Rmult_0_l.
      destruct ds as [|d' ds'] eqn:Ds.
      * unfold magnitude_is. cbn. unfold k in N. cbn in N. destruct (m - e * s)%Z eqn:Y; try reflexivity. exfalso. nia.
      * apply (nothing_between n negative _ _ _ C eq_refl ltac:(lia)). intros [_ [i D]]. apply N. unfold k. cbn
        [is_last].
        assert (j = i * 63 + e)%Z by nia. subst j. rewrite Z.add_comm, Z.mod_add, Z.mod_small by (specialize (E'
          eq_refl); lia).
        reflexivity.
    + rewrite law_of_an_exponential by (trivial; apply K). rewrite U. cbn [andb]. cbv zeta. fold s.
      generalize (density_range l Numerator Denominator s ltac:(lia)). intros Q.
      assert (C63 : density l (63 * s) < 1) by (apply density_below; trivial; lia).
      assert (Plus : density l m = density l (k * s) * density l (m - k * s))
        by (rewrite <- density_plus by exact G; f_equal; ring).
      destruct ds as [|d' ds'] eqn:Ds; cbn [is_last law_of_digits] in *.
      * unfold k. rewrite J, Z.sub_diag. cbn [Z.eqb one]. field.
      * assert (Hk : (m - k * s = (j / 63) * (s * 63))%Z).
        { unfold k. rewrite J, (Z.div_mod j 63) at 1 by lia. ring. }
        assert (H0 : (0 <= j / 63 * (s * 63))%Z) by (apply Z.mul_nonneg_nonneg; [apply Z.div_pos|]; lia).
        rewrite Hk, Z.mod_mul, (proj2 (Z.leb_le 0 _) H0) by lia.
        rewrite <- Hk, Plus. cbn [andb Z.eqb]. replace (s * 63)%Z with (63 * s)%Z by ring. field. lra.
Qed.

(* Where no entry stands for the rest, resolving changes nothing. *)
Lemma nothing_to_resolve fuel negative ds signs next : sound_chain l signs next ds -> signs = false ->
  (1 <= next)%Z -> forall words,
  has_rest (draw ds words negative true) = false ->
  exists m, magnitude l fuel ds (map Z.abs (draw ds words negative true)) = Gives m
    /\ number ds (draw ds words negative true) = (if negative then - m else m)%Z.
Proof.
  intros C. induction C as [signs next|d ds S Rs C IH]; intros U P words H.
  - exists 0%Z. destruct negative; split; reflexivity.
  - destruct words as [|[fraction head] words]; [exists 0%Z; destruct negative; split; reflexivity|].
    cbn [draw] in *. rewrite U in *. cbv beta zeta in *. cbn [has_rest existsb map magnitude] in *.
    apply orb_false_iff in H. destruct H as [N H]. destruct (IH eq_refl ltac:(lia) words H) as [m [M E]].
    destruct (sound_facts_of_digit l d (is_last ds) Numerator Denominator P S Rs) as [_ [_ [_ [_ [Range _]]]]].
    specialize (Range fraction head).
    unfold resolve_entry. rewrite N. cbn [and_then]. rewrite U. cbn [andb]. rewrite M. cbn [and_then].
    eexists. split; [reflexivity|]. unfold number in *. cbn [combine map]. cbn [total fold_right] in *. unfold total in
      E. rewrite E.
    destruct negative; rewrite ?Z.abs_opp, Z.abs_eq by lia; ring.
Qed.

Lemma zeros_are_zero negative signs next ds words : sound_chain l signs next ds -> signs = false ->
  number ds (draw ds words negative false) = 0%Z.
Proof.
  intros C. revert words. induction C as [signs next|d ds S Rs C IH]; intros words U; [reflexivity|].
  destruct words as [|[fraction head] words]; [reflexivity|]. cbn [draw]. rewrite U in *. specialize (IH words eq_refl).
  unfold number, total in *. cbn [combine map fold_right]. rewrite IH. ring.
Qed.

Lemma mean_of_digits_const ds c : mean_of_digits ds (fun _ => c) = c.
Proof.
  induction ds as [|d ds IH]; [reflexivity|]. cbn [mean_of_digits]. rewrite (mean_ext 8 _ (fun _ => c)); [apply
    mean_const|].
  intros head _. rewrite (mean_ext 56 _ (fun _ => c)); [apply mean_const|]. intros fraction _. exact IH.
Qed.

Notation everywhere := (expected_ext coin (p_of l) (fun _ => True) (fun _ => True) _ _ _ (keeps_to_all coin _)).

(* A number without a sign is its magnitude. *)
Lemma chance_without_sign fuel ds next x : sound_chain l false next ds -> (1 <= next)%Z ->
  chance l ds fuel x = magnitude_is fuel ds false x.
Proof.
  intros C P. apply mean_of_digits_ext. intros words. unfold number_drawn.
  destruct (has_rest (draw ds words false true)) eqn:H.
  - unfold resolve. rewrite expected_then. apply everywhere. intros m _. cbn [expected].
    replace (hd 0 (draw ds words false true) <? 0)%Z with false; [reflexivity|]. symmetry. apply Z.ltb_ge.
    inversion C as [|d ds' S Rs C' U N D]; subst; [cbn; lia|]. destruct words as [|[fraction head] words]; [cbn; lia|].
    destruct (sound_facts_of_digit l d (is_last ds') Numerator Denominator P S Rs) as [_ [_ [_ [_ [Range _]]]]].
    cbn [draw hd]. rewrite U. apply Range.
  - destruct (nothing_to_resolve fuel false ds false next C eq_refl P words H) as [m [-> ->]]. reflexivity.
Qed.

(* One with a sign is that of bit 7, times its entry and what follows; zero has no sign. *)
Lemma chance_with_sign fuel d ds x : signed d = true -> step d = 1%Z -> sound_digit l d (is_last ds) = true ->
  sound_rest l d (is_last ds) = true -> sound_chain l false 62 ds ->
  chance l (d :: ds) fuel x = drawn_digit d (fun entry b =>
    expected coin (p_of l) (resolve_entry l fuel d (is_last ds) entry) (fun e =>
      if (e =? 0)%Z then one (x =? 0)%Z else magnitude_is fuel ds b ((if b then - x else x) - e))).
Proof.
  intros Sg St S Rs C. assert (P : (1 <= step d)%Z) by lia.
  destruct (sound_facts_of_digit l d (is_last ds) Numerator Denominator P S Rs) as [_ [_ [_ [_ [Range _]]]]].
  unfold chance, drawn_digit. cbn [mean_of_digits]. apply mean_ext. intros head _. apply mean_ext. intros fraction _.
  specialize (Range fraction head). set (entry := entry_of d fraction head) in *. set (b := Z.testbit head 7).
  set (y := if b then (- x)%Z else x).
  transitivity (expected coin (p_of l) (resolve_entry l fuel d (is_last ds) entry) (fun e => mean_of_digits ds (fun
    words =>
    if (e =? 0)%Z then one (x =? 0)%Z else expected coin (p_of l)
      (magnitude l fuel ds (map Z.abs (draw ds words b true))) (fun found => one (found =? y - e)%Z)))).
  2: { apply everywhere. intros e _. destruct (e =? 0)%Z; [apply mean_of_digits_const|reflexivity]. }
  rewrite expected_of_digits. apply mean_of_digits_ext. intros words. unfold number_drawn. cbn [draw].
  fold entry. fold b. rewrite Sg. cbv zeta. destruct (Z.ltb_spec 0 entry) as [Lt|Ge].
  - replace (Z.abs (if b then - entry else entry)) with entry by (destruct b; lia). cbn [has_rest existsb].
    replace (Z.abs (if b then - entry else entry)) with entry by (destruct b; lia).
    fold (has_rest (draw ds words b true)). destruct ((entry =? 63)%Z || has_rest (draw ds words b true)) eqn:H.
    + unfold resolve. cbn [map hd magnitude]. fold (is_last ds).
      replace (Z.abs (if b then - entry else entry)) with entry by (destruct b; lia).
      replace ((if b then - entry else entry) <? 0)%Z with b by (destruct b; symmetry; [apply Z.ltb_lt|apply Z.ltb_ge];
        lia).
      rewrite !expected_then. apply everywhere. intros e _. rewrite Sg. cbn [andb]. destruct (Z.eqb_spec e 0) as [->|N].
      * cbn [expected]. destruct b, x; reflexivity.
      * rewrite expected_then. apply everywhere. intros more _. cbn [expected]. rewrite St. f_equal. unfold y.
        destruct b; [destruct (Z.eqb_spec (- (e * 1 + more)) x), (Z.eqb_spec more (- x - e))
          |destruct (Z.eqb_spec (e * 1 + more) x), (Z.eqb_spec more (x - e))]; lia.
    + apply orb_false_iff in H. destruct H as [N H]. unfold resolve_entry. rewrite N. cbn [expected].
      rewrite (proj2 (Z.eqb_neq entry 0)) by lia.
      destruct (nothing_to_resolve fuel b ds false 62 C eq_refl ltac:(lia) words H) as [m [-> M]]. cbn [expected].
      unfold number, total in *. cbn [combine map fold_right]. rewrite M, St. f_equal. unfold y.
      destruct b; [destruct (Z.eqb_spec (1 * - entry + - m) x), (Z.eqb_spec m (- x - entry))
        |destruct (Z.eqb_spec (1 * entry + m) x), (Z.eqb_spec m (x - entry))]; lia.
  - replace entry with 0%Z by lia. cbn [resolve_entry Z.eqb expected].
    assert (Zero : expected coin (p_of l) (resolve l fuel (d :: ds) (0 :: draw ds words b false)%Z) (fun found => one
      (found =? x)%Z)
      = one (x =? 0)%Z).
    { unfold resolve. cbn [map hd magnitude Z.abs]. unfold resolve_entry. cbn [Z.eqb and_then]. rewrite Sg. cbn [andb
      and_then expected].
      destruct x; reflexivity. }
    destruct (has_rest (0 :: draw ds words b false)%Z); [exact Zero|]. cbn [expected].
    generalize (zeros_are_zero b false 62 ds words C eq_refl). unfold number, total. cbn [combine map fold_right].
    intros ->. destruct x; cbn; rewrite ?Z.mul_0_r; reflexivity.
Qed.

(* What the digits of a signed number come to. *)
Lemma limit_with_sign d ds x : signed d = true -> step d = 1%Z -> sound_digit l d (is_last ds) = true ->
  sound_rest l d (is_last ds) = true -> sound_chain l false 62 ds -> (ds <> [] -> gaussian l = false) ->
  is_lim_seq (fun fuel => chance l (d :: ds) fuel x)
    (Finite (if (x =? 0)%Z then entry_law l d (is_last ds) 0 else
     1 / 2 * let k := if is_last ds then Z.abs x else ((Z.abs x - 1) mod 62 + 1)%Z in
       entry_law l d (is_last ds) k * law_of_digits ds 62 (Z.abs x - k))).
Proof.
  intros Sg St S Rs C G. assert (P : (1 <= step d)%Z) by lia.
  set (y := fun b : bool => if b then (- x)%Z else x).
  apply (is_lim_seq_ext (fun n => drawn_digit d (fun entry b => expected coin (p_of l) (resolve_entry l n d (is_last
    ds) entry)
    (fun e => if (e =? 0)%Z then one (x =? 0)%Z else magnitude_is n ds b (y b - e))))).
  { intros n. symmetry. apply chance_with_sign; trivial. }
  assert (Below : forall n b m, (m < 0)%Z -> magnitude_is n ds b m = 0)
    by (intros; apply (nothing_between n b ds false 62 C eq_refl); lia).
  destruct (Z.eqb_spec x 0) as [->|N].
  - replace (entry_law l d (is_last ds) 0)
      with (1 / 2 * (entry_law l d (is_last ds) 0 * 1) + 1 / 2 * (entry_law l d (is_last ds) 0 * 1)) by lra.
    apply (digit_limit l d (is_last ds) Numerator Denominator P S Rs (fun n b e => if (e =? 0)%Z then one true else
      magnitude_is n ds b (y b - e))
      (fun _ => 0%Z) (fun _ _ => 1) (fun _ => 1)); [intros; lia| |intros; apply is_lim_seq_const].
    intros n b e E _. destruct (Z.eqb_spec e 0); [cbn [one]; ring|]. rewrite Below; [cbn [one]; ring|].
    unfold y. destruct b; lia.
  - set (k := fun b => if (y b <=? 0)%Z then 0%Z else if is_last ds then y b else ((y b - 1) mod 62 + 1)%Z).
    set (c := fun n b => if (y b <=? 0)%Z then 0 else magnitude_is n ds b (y b - k b)).
    set (c' := fun b => if (y b <=? 0)%Z then 0 else law_of_digits ds 62 (y b - k b)).
    replace (1 / 2 * _) with (1 / 2 * (entry_law l d (is_last ds) (k true) * c' true)
      + 1 / 2 * (entry_law l d (is_last ds) (k false) * c' false)).
    + apply (digit_limit l d (is_last ds) Numerator Denominator P S Rs
        (fun n b e => if (e =? 0)%Z then one false else magnitude_is n ds b (y b - e)) k c c').
      * intros b. unfold k. destruct (Z.leb_spec (y b) 0); [lia|]. destruct (is_last ds); [split; [lia|discriminate]|].
        generalize (Z.mod_pos_bound (y b - 1) 62). lia.
      * intros n b e E E'. unfold c. destruct (Z.leb_spec (y b) 0) as [Le|Gt].
        { rewrite Rmult_0_r. destruct (Z.eqb_spec e 0); [reflexivity|]. apply Below. lia. }
        destruct (Z.eqb_spec e (k b)) as [->|Ne]; cbn [one]; [rewrite Rmult_1_l|rewrite Rmult_0_l].
        { destruct (Z.eqb_spec (k b) 0) as [Z0|]; [|reflexivity]. exfalso. revert Z0. unfold k.
          rewrite (proj2 (Z.leb_gt (y b) 0)) by exact Gt. destruct (is_last ds); [lia|].
          generalize (Z.mod_pos_bound (y b - 1) 62). lia. }
        destruct (Z.eqb_spec e 0) as [|E0]; [reflexivity|]. revert Ne. unfold k. rewrite (proj2 (Z.leb_gt (y b) 0)) by
          exact Gt.
        destruct ds as [|d' ds'] eqn:Ds; cbn [is_last]; intros Ne.
        { unfold magnitude_is. cbn. destruct (y b - e)%Z eqn:Y; try reflexivity. exfalso. lia. }
        apply (nothing_between n b _ _ _ C eq_refl ltac:(lia)). intros [_ [i D]]. apply Ne.
        replace (y b - 1)%Z with (e - 1 + i * 62)%Z by lia.
        rewrite Z.mod_add, Z.mod_small by (specialize (E' eq_refl); lia). ring.
      * intros b. unfold c, c'. destruct (y b <=? 0)%Z; [apply is_lim_seq_const|].
        destruct ds as [|d' ds'] eqn:Ds.
        { apply (is_lim_seq_ext (fun _ => one (y b - k b =? 0)%Z)); [|apply is_lim_seq_const]. intros n.
          unfold magnitude_is. cbn. rewrite Z.eqb_sym. reflexivity. }
        apply (magnitude_limit b (G ltac:(discriminate)) _ _ _ C eq_refl). lia.
    + unfold c', k, y. destruct (Z.leb_spec (- x) 0), (Z.leb_spec x 0); try lia;
        [rewrite Z.abs_eq by lia|rewrite Z.abs_neq by lia]; cbv zeta; ring.
Qed.

(* f sums up. *)
Lemma total_is : (gaussian l = true -> two_sided l = true) -> is_series (mass_of l) (total_of l) /\ total_of l =
  if gaussian l then whole_sum l
  else (if two_sided l then 1 + density l 1 else 1) / (1 - density l 1).
Proof.
  intros Two. set (t := if gaussian l then whole_sum l else _). assert (Sum : is_series (mass_of l) t).
  { apply is_series_decr_1. unfold mass_of. cbn [Nat.ltb Nat.leb]. change (Z.of_nat 0) with 0%Z.
    rewrite andb_false_r, density_0, Rmult_1_l.
    change (plus t (opp 1)) with (t - 1). unfold t. destruct (gaussian l) eqn:G.
    - rewrite Two by reflexivity. replace (whole_sum l - 1) with (2 * Series (after l 0)) by (unfold whole_sum; ring).
      apply (is_series_ext (fun k => 2 * after l 0 k)).
      + intros k. cbn [andb Nat.ltb Nat.leb]. unfold after. do 2 f_equal. lia.
      + apply (is_series_scal (K := R_AbsRing) (V := R_NormedModule) 2). apply Series_correct, sums_exist; trivial.
    - generalize (density_range l Numerator Denominator 1 ltac:(lia)) (density_below l Numerator Denominator 1
      ltac:(lia)).
      intros Q Q1. set (q := density l 1) in *. set (f := if two_sided l then 2 else 1).
      replace ((if two_sided l then 1 + q else 1) / (1 - q) - 1) with (f * q / (1 - q)) by (unfold f; destruct
        (two_sided l); field; lra).
      apply (is_series_ext (fun k => q ^ k * (f * q))).
      + intros k. cbn [Nat.ltb Nat.leb]. rewrite andb_true_r. fold f.
        assert (P : density l (Z.of_nat (Datatypes.S k)) = q * q ^ k).
        { induction k as [|k IH]; [simpl; unfold q; ring|]. replace (Z.of_nat (Datatypes.S (Datatypes.S k)))
            with (Z.of_nat (Datatypes.S k) + 1)%Z by lia. rewrite density_plus, IH by exact G. fold q. simpl. ring. }
        rewrite P. match goal with |- ?a = ?b => change (a = b :> R) end. ring.
      + apply first_success. lra. }
  split; [apply Series_correct; exists t; exact Sum|apply is_series_unique, Sum].
Qed.
End Numbers.

(* For sound digits a number whose words and rest are drawn is x with the probability f(|x|) / (the sum of f): in the
   limit of all attempts, where coins are exact. *)
Theorem numbers_are_exact l digits : sound_digits l digits = true ->
  is_series (mass_of l) (total_of l)
  /\ forall x, (two_sided l = false -> 0 <= x)%Z ->
     is_lim_seq (fun fuel => chance l digits fuel x) (density l (Z.abs x) / total_of l).
Proof.
  unfold sound_digits. rewrite !andb_true_iff, !Z.leb_le. intros [[N D] H]. destruct (sound_chain_of _ _ _ _ H) as [C
    Some].
  clear H. inversion C as [|d ds S Rs C' U St E]; subst; [congruence|]. clear Some. assert (P : (1 <= step d)%Z) by lia.
  destruct (sound_facts_of_digit l d (is_last ds) N D P S Rs) as [_ [_ [_ [_ [_ [Gauss _]]]]]].
  assert (Two : gaussian l = true -> two_sided l = true) by (intros G; rewrite <- U; apply Gauss, G).
  destruct (total_is l N D Two) as [Sum Total]. split; [exact Sum|]. intros x X. rewrite Total. clear Sum Total.
  destruct (signed d) eqn:Sg; rewrite <- U in *.
  - assert (Short : ds <> [] -> gaussian l = false).
    { intros Nd. destruct (gaussian l); [|reflexivity]. destruct (Gauss eq_refl) as [_ [_ L]]. destruct ds;
      [congruence|discriminate]. }
    rewrite St in C'. change (1 * 62)%Z with 62%Z in C'.
    generalize (limit_with_sign l N D d ds x Sg St S Rs C' Short).
    set (answer := if (x =? 0)%Z then _ else _). intros L. replace (density l (Z.abs x) / _) with answer; [exact L|].
      clear L.
    unfold answer. destruct (Z.eqb_spec x 0) as [->|Nz].
    + cbn [Z.abs]. rewrite density_0. destruct (gaussian l) eqn:G.
      * rewrite law_of_a_gaussian by (trivial; lia). rewrite density_0. cbn [Z.eqb]. unfold Rdiv. ring.
      * rewrite law_of_an_exponential by (trivial; lia). rewrite Sg, St. cbn [andb Z.eqb]. cbv zeta.
        generalize (density_range l N D 1 ltac:(lia)) (density_below l N D 1 ltac:(lia)). intros. field. lra.
    + set (y := Z.abs x). assert (Y : (1 <= y)%Z) by (unfold y; lia). clearbody y. cbv zeta.
      destruct ds as [|d' ds'] eqn:Ds; cbn [is_last law_of_digits].
      * rewrite Z.sub_diag. cbn [Z.eqb one]. destruct (gaussian l) eqn:G.
        { rewrite law_of_a_gaussian by (trivial; lia). rewrite (proj2 (Z.eqb_neq y 0)) by lia.
          generalize (whole_sum_positive l N D G). intros. field. lra. }
        rewrite law_of_an_exponential by (trivial; lia || discriminate). rewrite Sg, St, (proj2 (Z.eqb_neq y 0)) by lia.
        cbn [andb]. cbv zeta. rewrite Z.mul_1_r.
        generalize (density_range l N D 1 ltac:(lia)) (density_below l N D 1 ltac:(lia)). intros. field. lra.
      * assert (G := Short ltac:(discriminate)). rewrite G. set (k := ((y - 1) mod 62 + 1)%Z).
        assert (K : (1 <= k <= 62)%Z) by (unfold k; generalize (Z.mod_pos_bound (y - 1) 62); lia).
        assert (M : (y - k = (y - 1) / 62 * 62)%Z) by (unfold k; generalize (Z.div_mod (y - 1) 62); lia).
        assert (Q0 : (0 <= (y - 1) / 62)%Z) by (apply Z.div_pos; lia).
        rewrite law_of_an_exponential by (trivial; lia). rewrite Sg, St, (proj2 (Z.eqb_neq k 0)) by lia.
        cbn [andb]. cbv zeta. rewrite M, Z.mod_mul, (proj2 (Z.leb_le 0 ((y - 1) / 62 * 62))) by lia. cbn [andb Z.eqb].
        rewrite <- M, !Z.mul_1_r. replace (density l y) with (density l k * density l (y - k))
          by (rewrite <- density_plus by exact G; f_equal; ring).
        generalize (density_range l N D 1 ltac:(lia)) (density_below l N D 1 ltac:(lia)) (density_below l N D 62
          ltac:(lia)).
        intros. field. lra.
  - assert (G : gaussian l = false) by (destruct (gaussian l); [specialize (Two eq_refl)|]; congruence).
    apply (is_lim_seq_ext (fun n => magnitude_is l n (d :: ds) false x)).
    { intros n. symmetry. apply (chance_without_sign l N D n _ 1); [exact C|lia]. }
    replace (density l (Z.abs x) / _) with (law_of_digits l (d :: ds) 1 x).
    + apply (magnitude_limit l N D false G _ false); [exact C|reflexivity|lia].
    + specialize (X eq_refl). cbn [law_of_digits]. rewrite (proj2 (Z.leb_le 0 x)), Z.mod_1_r, Z.abs_eq, G by exact X.
      cbn [andb Z.eqb]. generalize (density_below l N D 1 ltac:(lia)). intros. field. lra.
Qed.
