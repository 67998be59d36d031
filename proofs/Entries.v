(* The probabilities of a digit's entries, and what their words fall short of. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Interval Require Import Xreal.
From Dpnoise Require Import Decide Fixed Model Words Sound Values Integers Programs Tail Rest Alias.
Import ListNotations.
Open Scope R_scope.
(* Means over 56 and 64 bits are not to be computed. *)
Local Opaque mean.

(* The probability that an entry is e or more. With q = f(step) it is 2 q^e / (1 + q) for e > 0 where there are two
   signs,
   and q^e where there are none, if the digit is the last one; otherwise as much more as no entry from 63 on has. *)
Definition at_least (l : law) (d : digit) (last : bool) (e : Z) : R :=
  if (e =? 0)%Z then 1
  else if gaussian l then 2 * Series (after l (Z.to_nat (e - 1))) / whole_sum l
  else (if signed d then 2 / (1 + density l (step d)) else 1)
    * (density l (e * step d) - if last then 0 else density l (63 * step d))
    / (1 - if last then 0 else density l ((if signed d then 62 else 63) * step d)).

(* So an entry of an exponential has the probability: *)
Notation exponential_share l d last e := (
  let closing := if last then 0 else density l ((if signed d then 62 else 63) * step d) in
  let q := density l (step d) in
  if signed d && (e =? 0)%Z then (1 - q) / (1 + q)
  else (if signed d then 2 else 1) * (1 - q) * density l (e * step d) / ((if signed d then 1 + q else 1) * (1 -
    closing))).

(* What an entry lacks, in words of 2^62; 63 stands for all that the others leave out. *)
Definition lacking (l : law) (d : digit) (last : bool) (e : Z) : R :=
  IZR (2 ^ 62) * (if (e <? 63)%Z then at_least l d last e - at_least l d last (e + 1) else at_least l d last 63)
  - if (e <? 63)%Z then IZR (entry_words d e) else 0.

(* The coins of numbers. *)
Definition p_of (l : law) (c : coin) : R :=
  match c with Lacking d last e => lacking l d last e | OfTail c => p_of_tail l c end.

Section Digit.
Variables (l : law) (d : digit) (last : bool).
Hypothesis Numerator : (1 <= numerator l)%Z.
Hypothesis Denominator : (1 <= denominator l)%Z.
Hypothesis Step : (1 <= step d)%Z.
Hypothesis S : sound_digit l d last = true.
Hypothesis Rest : sound_rest l d last = true.
Notation T := (at_least l d last).
Notation lacks := (lacking l d last).

Lemma density_0 : density l 0 = 1.
Proof. rewrite density_is_power, Z.mul_0_l, Rmult_0_r. apply exp_0. Qed.

Lemma density_range x : (0 <= x)%Z -> 0 < density l x <= 1.
Proof.
  intros X. rewrite density_is_power. apply power_range; trivial. destruct (gaussian l); nia.
Qed.

Lemma density_below x : (0 < x)%Z -> density l x < 1.
Proof.
  intros X. rewrite <- exp_0. unfold density. apply exp_increasing, Ropp_lt_cancel. rewrite Ropp_0, Ropp_involutive.
  apply Rdiv_lt_0_compat; apply IZR_lt; [apply dividend_positive; lia|apply divisor_positive, Numerator].
Qed.

Lemma density_plus x y : gaussian l = false -> density l (x + y) = density l x * density l y.
Proof.
  intros G. unfold density, dividend. rewrite G, <- exp_plus. f_equal. rewrite Z.mul_add_distr_r, plus_IZR. unfold
    Rdiv. ring.
Qed.

Lemma sums_exist k : gaussian l = true -> ex_series (after l k).
Proof.
  intros G. apply (ex_series_ext (fun n => after l 0 (k + n))).
  - intros n. reflexivity.
  - apply (ex_series_incr_n (after l 0) k). apply (ex_series_incr_n (after l 0) 62).
    apply (ex_series_ext (after l 62)); [intros n; reflexivity|]. apply it_converges; assumption.
Qed.

Lemma sum_positive k : gaussian l = true -> 0 <= Series (after l k).
Proof.
  intros G. rewrite <- (Rmult_0_l (Series (after l k))), <- Series_scal_l. apply Series_le; [|apply sums_exist, G].
  intros n. generalize (exp_pos (- (IZR (dividend l (Z.of_nat (k + n) + 1)) / IZR (divisor l)))). unfold after,
    density. lra.
Qed.

Lemma whole_sum_positive : gaussian l = true -> 1 <= whole_sum l.
Proof. intros G. unfold whole_sum. generalize (sum_positive 0 G). lra. Qed.

Lemma sum_follows k : gaussian l = true ->
  Series (after l k) = density l (Z.of_nat k + 1) + Series (after l (Datatypes.S k)).
Proof.
  intros G. rewrite (Series_incr_1 (after l k)) by apply sums_exist, G. f_equal.
  - unfold after. f_equal. lia.
  - apply Series_ext. intros i. unfold after. do 2 f_equal. lia.
Qed.

(* The densities of a Gaussian are powers of the first one; from 63 k on they add up to at most 2^(1 - 64 k^2). *)
Section Gaussian.
Hypothesis G : gaussian l = true.
Let q : R := density l 1.

Lemma power_of_square i : density l (Z.of_nat i) = q ^ (i * i).
Proof.
  unfold q, density. rewrite exp_pow, INR_IZR_INZ, Nat2Z.inj_mul. f_equal. unfold dividend.
  rewrite G, !Z.pow_2_r, !mult_IZR. unfold Rdiv. ring.
Qed.

Lemma power_falls a b : (a <= b)%nat -> 0 <= q ^ b <= q ^ a.
Proof.
  intros L. generalize (density_range 1 ltac:(lia)). fold q. intros Q.
  split; [apply pow_le; lra|]. replace b with (a + (b - a))%nat by lia. rewrite pow_add.
  assert (q ^ (b - a) <= 1) by (rewrite <- (pow1 (b - a)); apply pow_incr; lra).
  assert (0 <= q ^ a) by (apply pow_le; lra). nra.
Qed.

Lemma rest_is_tiny n k : (1 <= n)%Z -> (n <= Z.of_nat (k * k))%Z -> (1 <= k)%nat ->
  Series (after l (63 * k - 1)) <= 2 / IZR (unit n).
Proof.
  intros N K K1.
  assert (First : q ^ (63 * 63) <= (/ 2) ^ 64).
  { rewrite <- (power_of_square 63). generalize S Rest. unfold sound_digit, sound_rest. rewrite G, !andb_true_iff.
    cbn [implb]. rewrite !andb_true_iff. intros [[_ [[[[_ _] Last] _] _]] _] [_ Fits]. rewrite Last in Fits.
    cbn [implb] in Fits. apply at_most_correct in Fits.
    change (denote (Mul ?a ?b)) with (denote a * denote b) in Fits. rewrite density_term in Fits. cbn [denote] in Fits.
    change (Z.of_nat 63) with 63%Z. simpl. lra. }
  assert (Half : q ^ 63 <= / 2).
  { apply Rnot_lt_le. intros L. assert (C : (/ 2) ^ 63 <= q ^ (63 * 63)) by (rewrite pow_mult; apply pow_incr; lra).
    assert ((/ 2) ^ 64 < (/ 2) ^ 63) by (simpl; lra). lra. }
  assert (Falls : forall h, 0 <= after l (63 * k - 1) h <= / IZR (unit n) * (/ 2) ^ h).
  { intros h. unfold after. replace (Z.of_nat (63 * k - 1 + h) + 1)%Z with (Z.of_nat (63 * k + h)) by lia.
    rewrite power_of_square. split; [apply (power_falls 0); lia|].
    apply Rle_trans with (q ^ (63 * 63 * Z.to_nat n + 63 * h)); [apply power_falls; nia|].
    rewrite pow_add, !pow_mult. apply Rmult_le_compat.
    - apply pow_le, pow_le, pow_le, Rlt_le, exp_pos.
    - apply pow_le, pow_le, Rlt_le, exp_pos.
    - unfold unit. rewrite <- (Z2Nat.id n) at 2 by lia. rewrite Z.pow_mul_r, <- pow_IZR, <- pow_inv by lia.
      apply pow_incr. split; [apply pow_le, pow_le, Rlt_le, exp_pos|]. rewrite <- pow_mult.
      eapply Rle_trans; [exact First|]. simpl. lra.
    - apply pow_incr. split; [apply pow_le, Rlt_le, exp_pos|exact Half]. }
  assert (Geom : ex_series (fun h => / IZR (unit n) * (/ 2) ^ h)).
  { apply (ex_series_scal (K := R_AbsRing) (V := R_NormedModule)), ex_series_geom. rewrite Rabs_pos_eq; lra. }
  generalize (Series_le _ _ Falls Geom). rewrite Series_scal_l, Series_geom by (rewrite Rabs_pos_eq; lra). lra.
Qed.
End Gaussian.

(* The probability of an entry. *)
Lemma of_a_gaussian e : gaussian l = true -> (0 <= e)%Z ->
  T e - T (e + 1) = IZR (if e =? 0 then 1 else 2)%Z * density l e / whole_sum l.
Proof.
  intros G E. generalize (whole_sum_positive G). intros W. unfold at_least. rewrite G.
  rewrite (proj2 (Z.eqb_neq (e + 1) 0)) by lia. replace (e + 1 - 1)%Z with e by ring.
  destruct (Z.eqb_spec e 0) as [->|N].
  - rewrite density_0. unfold whole_sum in *. cbn [Z.eqb Z.to_nat]. field. lra.
  - rewrite (sum_follows _ G). replace (Datatypes.S (Z.to_nat (e - 1))) with (Z.to_nat e) by lia.
    replace (Z.of_nat (Z.to_nat (e - 1)) + 1)%Z with e by lia. field. lra.
Qed.

Lemma of_an_exponential e : gaussian l = false -> (0 <= e)%Z ->
  T e - T (e + 1) = exponential_share l d last e.
Proof.
  intros G E. unfold at_least. rewrite G, (proj2 (Z.eqb_neq (e + 1) 0)) by lia. cbv zeta.
  generalize (density_range (step d) ltac:(lia)). intros Q.
  assert (C : forall k, (0 < k)%Z -> density l (k * step d) < 1) by (intros; apply density_below; nia).
  assert (C62 := C 62%Z eq_refl). assert (C63 := C 63%Z eq_refl).
  rewrite Z.mul_add_distr_r, Z.mul_1_l, density_plus by exact G.
  assert (Next : density l (63 * step d) = density l (62 * step d) * density l (step d))
    by (rewrite <- density_plus by exact G; f_equal; lia).
  destruct (Z.eqb_spec e 0) as [->|N]; rewrite ?andb_true_r, ?andb_false_r.
  - rewrite Z.mul_0_l, density_0.
    destruct (signed d), last; rewrite ?Next; field; rewrite ?Next in *; repeat split; lra.
  - destruct (signed d), last; rewrite ?Next; field; rewrite ?Next in *; repeat split; lra.
Qed.

Lemma sound_facts_of_digit :
  (forall e, (0 <= e < 63)%Z -> 0 <= lacks e <= 1) /\ (0 <= lacks 63 <= 1)
  /\ (1 <= entry_words d 63 <= 64)%Z /\ total (map (entry_words d) (indices 64)) = (2 ^ 62)%Z
  /\ (forall fraction head, (0 <= entry_of d fraction head <= 63)%Z)
  /\ (gaussian l = true -> step d = 1%Z /\ signed d = true /\ last = true) /\ (last = false -> T 63 = 0).
Proof.
  assert (Closed : gaussian l = false -> last = false -> T 63 = 0).
  { intros G E. unfold at_least. rewrite G, E. change (63 =? 0)%Z with false. cbv iota. unfold Rdiv. ring. }
  assert (Tiny : gaussian l = true -> Series (after l 62) <= 2 / IZR (unit 1))
    by (intros G; apply (rest_is_tiny G 1 1); lia).
  generalize S Rest. unfold sound_digit, sound_rest. rewrite !andb_true_iff.
  intros [[[[[[_ _] Sum] W1] W2] Shape] _] [Small Fits].
  assert (Gauss : gaussian l = true -> step d = 1%Z /\ signed d = true /\ last = true).
  { intros G. rewrite G in Shape. cbn [implb] in Shape. rewrite !andb_true_iff in Shape.
    destruct Shape as [[[[A B] C] _] _]. apply Z.eqb_eq in A. auto. }
  split; [|split; [|split; [|split; [|split; [|split]]]]].
  - intros e E. unfold lacking. rewrite (proj2 (Z.ltb_lt e 63)) by lia. destruct (gaussian l) eqn:G.
    + rewrite of_a_gaussian by (assumption || lia). generalize (gaussian_entries_have_their_words l d last e G S E).
      lra.
    + generalize (exponential_entries_have_their_words l d last e G S E).
      replace (denote (entry_probability l d last e)) with (T e - T (e + 1)); [lra|].
      rewrite of_an_exponential by (assumption || lia). unfold entry_probability. cbv zeta.
      assert (F : forall x, exp (0 - IZR (dividend l x) / IZR (divisor l)) = density l x) by exact (density_term l).
      destruct (signed d), (e =? 0)%Z, last; cbn [andb denote]; rewrite ?F, ?Rminus_0_r; reflexivity.
  - unfold lacking. change (63 <? 63)%Z with false. cbv iota. rewrite Rminus_0_r. destruct last eqn:L.
    2: { destruct (gaussian l) eqn:G; [destruct (Gauss eq_refl) as [_ [_ X]]; discriminate|].
      rewrite (Closed eq_refl eq_refl), Rmult_0_r. lra. }
    cbn [implb] in Fits. unfold at_least. change (63 =? 0)%Z with false. cbv iota. destruct (gaussian l) eqn:G.
    + generalize (whole_sum_positive G) (sum_positive 62 G) (Tiny eq_refl).
      change (Z.to_nat (63 - 1)) with 62%nat. change (IZR (unit 1)) with (IZR (4 * 2 ^ 62)). rewrite mult_IZR.
      intros W P T62. assert (0 < IZR (2 ^ 62)) by (apply IZR_lt; reflexivity).
      replace (IZR (2 ^ 62) * (2 * Series (after l 62) / whole_sum l))
        with (IZR (2 ^ 62) * (2 * Series (after l 62)) / whole_sum l) by (field; lra).
      split; [apply Rdiv_le_0_compat; [apply Rmult_le_pos; lra|lra]|]. apply Rle_div_l; [lra|].
      apply Rle_div_r in T62; lra.
    + apply at_most_correct in Fits. rewrite !Rminus_0_r. assert (One : forall x, x / 1 = x) by (intros; field).
      rewrite One.
      generalize (density_range (step d) ltac:(lia)) (density_range (63 * step d) ltac:(lia)). intros Q F.
      assert (F' : forall x, exp (0 - IZR (dividend l x) / IZR (divisor l)) = density l x) by exact (density_term l).
      destruct (signed d); cbn [denote] in Fits; rewrite ?F' in Fits; change (2 ^ 63)%Z with (2 * 2 ^ 62)%Z in Fits;
        rewrite ?mult_IZR in Fits; assert (0 < IZR (2 ^ 62)) by (apply IZR_lt; reflexivity).
      * replace (IZR (2 ^ 62) * (2 / (1 + density l (step d)) * density l (63 * step d)))
          with (2 * IZR (2 ^ 62) * density l (63 * step d) / (1 + density l (step d))) by (field; lra).
        split; [apply Rdiv_le_0_compat; [repeat apply Rmult_le_pos|]; lra|]. apply Rle_div_l; lra.
      * rewrite Rmult_1_l. split; [apply Rmult_le_pos|]; lra.
  - apply Z.leb_le in W1, W2. lia.
  - apply Z.eqb_eq, Sum.
  - intros fraction head. unfold entry_of. cbv zeta.
    assert (C : (0 <= Z.land head (2 ^ 6 - 1) <= 63)%Z).
    { rewrite Z.sub_1_r, <- Z.ones_equiv, Z.land_ones by lia. generalize (Z.mod_pos_bound head (2 ^ 6)). lia. }
    destruct (fraction <? _)%Z; [exact C|]. rewrite forallb_forall in Small. unfold item.
    destruct (nth_in_or_default (Z.to_nat (Z.land head (2 ^ 6 - 1))) (entries d) 0%Z) as [I| ->]; [|lia].
    specialize (Small _ I). rewrite andb_true_iff, !Z.leb_le in Small. exact Small.
  - exact Gauss.
  - intros E. destruct (gaussian l) eqn:G; [destruct (Gauss eq_refl) as [_ [_ L]]; congruence|apply Closed; trivial].
Qed.

(* Together they lack the words of entry 63. *)
Lemma mean_of_64 g : mean 6 g = fold_right (fun e s => g e + s) 0 (indices 64) / 64.
Proof. Transparent mean. cbv -[Rplus Rdiv Rmult IZR]. Opaque mean. field. Qed.

Lemma lacking_adds_up n : forall i, (i + n = 63)%nat ->
  fold_right (fun e s => lacks e + s) 0 (map Z.of_nat (seq i (Datatypes.S n)))
  = IZR (2 ^ 62) * T (Z.of_nat i) - IZR (total (map (entry_words d) (map Z.of_nat (seq i (Datatypes.S n)))))
    + IZR (entry_words d 63).
Proof.
  induction n as [|n IH]; intros i E.
  - replace i with 63%nat by lia. cbn [seq map fold_right total]. change (Z.of_nat 63) with 63%Z. unfold lacking.
    change (63 <? 63)%Z with false. cbv iota. rewrite Z.add_0_r. generalize (IZR (2 ^ 62)) (T 63) (IZR (entry_words d
      63)). intros. ring.
  - change (seq i (Datatypes.S (Datatypes.S n))) with (i :: seq (Datatypes.S i) (Datatypes.S n)).
    unfold total in *. cbn [map fold_right]. cbn [map fold_right] in IH. rewrite IH, plus_IZR by lia. unfold lacking.
    rewrite (proj2 (Z.ltb_lt (Z.of_nat i) 63)) by lia. replace (Z.of_nat i + 1)%Z with (Z.of_nat (Datatypes.S i)) by
      lia.
    generalize (IZR (2 ^ 62)) (T (Z.of_nat i)) (T (Z.of_nat (Datatypes.S i))) (IZR (entry_words d 63)).
    generalize (IZR (entry_words d (Z.of_nat i))) (IZR (fold_right Z.add 0%Z (map (entry_words d) (map Z.of_nat
      (seq (Datatypes.S i) (Datatypes.S n)))))). intros. ring.
Qed.

Lemma mean_lacking : mean 6 lacks = IZR (entry_words d 63) / 64.
Proof.
  destruct sound_facts_of_digit as [_ [_ [_ [Sum _]]]]. rewrite mean_of_64. f_equal.
  unfold indices in *. rewrite (lacking_adds_up 63 0 eq_refl), Sum. change (T (Z.of_nat 0)) with 1. generalize (IZR (2
    ^ 62)) (IZR (entry_words d 63)). intros. ring.
Qed.

Lemma entry_words_positive e : (0 <= entry_words d e)%Z.
Proof.
  unfold sound_digit in S. rewrite !andb_true_iff in S. destruct S as [[[[[[Th L] _] _] _] _] _]. apply Nat.eqb_eq in L.
  assert (Sum : forall k g, (forall w, (0 <= w < 2^ k)%Z -> (0 <= g w)%Z) -> (0 <= sum k g)%Z).
  { induction k as [|k IH]; intros g H; cbn [sum]; [apply H; simpl; lia|]. rewrite pow_S in H.
    apply Z.add_nonneg_nonneg; apply IH; intros w W; apply H; lia. }
  apply Sum. intros c C. change (2^ 6) with 64%Z in C. generalize (item_in _ _ c Th L C). rewrite andb_true_iff,
    Z.leb_le, Z.ltb_lt.
  intros. destruct (c =? e)%Z, (item (entries d) c =? e)%Z; lia.
Qed.
End Digit.
