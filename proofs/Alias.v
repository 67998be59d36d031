(* Alias tables: each entry of a digit has exactly as many words as its table says, and these are as many as there are
   below its probability. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Interval Require Import Xreal.
From Dpnoise Require Import Decide Model Words Sound Values.
Open Scope R_scope.

(* An entry and a sign have exactly their words: of 2^63, as many as lead to the entry. *)
Lemma entry_has_its_words d e (negative : bool) : (forall c, (0 <= c < 64)%Z -> (0 <= item (thresholds d) c < 2 ^
  56)%Z) ->
  mean 8 (fun head => mean 56 (fun fraction => one (entry_of d fraction head =? e)%Z * one (Bool.eqb (Z.testbit head 7)
    negative)))
  = IZR (entry_words d e) / IZR (2 ^ 62) * (1/2).
Proof.
  intros Th.
  change 8%nat with (6 + 2)%nat. rewrite mean_split.
  rewrite (mean_ext 2 _ (fun high => (IZR (entry_words d e) / IZR (2 ^ 62)) * one (Bool.eqb (Z.testbit high 1)
    negative))).
  - rewrite mean_scale. f_equal. cbn [mean]. destruct negative; simpl; lra.
  - intros high H. change (2^ 2) with 4%Z in H.
    rewrite (mean_ext 6 _ (fun column => IZR ((if column =? e then item (thresholds d) column else 0)
      + (if item (entries d) column =? e then 2 ^ 56 - item (thresholds d) column else 0))%Z * (/ IZR (2 ^ 56) * one
          (Bool.eqb (Z.testbit high 1) negative)))).
    + rewrite mean_scale_right, mean_integers. fold (entry_words d e).
      change (2 ^ 62)%Z with (2 ^ 56 * 2^ 6)%Z. rewrite mult_IZR. field. split; apply not_0_IZR; discriminate.
    + intros column C. change (2^ 6) with 64%Z in *.
      assert (Land : Z.land (high * 64 + column) (2 ^ 6 - 1) = column).
      { rewrite Z.sub_1_r, <- Z.ones_equiv, Z.land_ones by lia. change (2 ^ 6)%Z with 64%Z.
        rewrite Z.add_comm, Z.mod_add by lia. apply Z.mod_small, C. }
      assert (Bit : Z.testbit (high * 64 + column) 7 = Z.testbit high 1).
      { change 7%Z with (1 + 6)%Z. rewrite <- Z.div_pow2_bits by lia. change (2 ^ 6)%Z with 64%Z.
        rewrite Z.add_comm, Z.div_add, Z.div_small by lia. reflexivity. }
      unfold entry_of. cbv zeta. rewrite Land, Bit. generalize (Th column C). set (t := item (thresholds d) column).
      intros T.
      rewrite mean_scale_right. rewrite <- (Rmult_assoc _ (/ _)). f_equal.
      transitivity (mean 56 (fun f => one (item (entries d) column =? e)%Z
        + (one (column =? e)%Z - one (item (entries d) column =? e)%Z) * one (f <? t)%Z)).
      * apply mean_ext. intros f _. destruct (f <? t)%Z; unfold one; ring.
      * rewrite mean_plus, mean_const, mean_scale, mean_below by (change (2^ 56) with (2 ^ 56)%Z; lia).
        change (2^ 56) with (2 ^ 56)%Z.
        unfold one. destruct (column =? e)%Z, (item (entries d) column =? e)%Z; rewrite ?Z.add_0_r, ?Z.add_0_l,
          ?plus_IZR, ?minus_IZR;
          change (2 ^ 56)%Z with 72057594037927936%Z; field.
Qed.

Theorem entry_is_chosen l d last e (negative : bool) : sound_digit l d last = true ->
  mean 8 (fun head => mean 56 (fun fraction => one (entry_of d fraction head =? e)%Z * one (Bool.eqb (Z.testbit head 7)
    negative)))
  = IZR (entry_words d e) / IZR (2 ^ 62) * (1/2).
Proof.
  intros S. apply entry_has_its_words. intros c C. unfold sound_digit in S. repeat rewrite andb_true_iff in S.
  destruct S as [[[[[[T L] _] _] _] _] _]. apply Nat.eqb_eq in L.
  generalize (item_in _ _ c T L C). rewrite andb_true_iff, Z.leb_le, Z.ltb_lt. exact (fun x => x).
Qed.

(* The sum of a Gaussian's f. *)
Section Gaussian.
Variable l : law.
Hypothesis G : gaussian l = true.
Hypothesis N : (1 <= numerator l)%Z.
Hypothesis D : (1 <= denominator l)%Z.

Definition after (n k : nat) : R := density l (Z.of_nat (n + k) + 1).
Definition whole_sum : R := 1 + 2 * Series (after 0).

Lemma divisor_is_positive : 0 < IZR (divisor l).
Proof. apply IZR_lt. unfold divisor. rewrite G. nia. Qed.

Lemma density_is_positive x : 0 < density l x. Proof. apply exp_pos. Qed.

(* From 63 on f falls at least as fast as a geometric sequence. *)
Let r : R := density l 64 / density l 63.
Lemma ratio : 0 < r < 1.
Proof.
  unfold r. split; [apply Rdiv_lt_0_compat; apply density_is_positive|].
  apply (Rlt_div_l _ _ _ (density_is_positive 63)). rewrite Rmult_1_l. unfold density, dividend. rewrite G.
  apply exp_increasing, Ropp_lt_contravar, Rmult_lt_compat_r; [apply Rinv_0_lt_compat, divisor_is_positive|].
  apply IZR_lt. nia.
Qed.

Lemma it_falls h : 0 <= after 62 h <= density l 63 * r ^ h.
Proof.
  split; [apply Rlt_le, density_is_positive|]. generalize divisor_is_positive. intros P.
  assert (R : r = exp (- (127 * IZR (denominator l) * IZR (denominator l) / IZR (divisor l)))).
  { unfold r, density, dividend. rewrite G. unfold Rdiv at 1. rewrite <- exp_Ropp, <- exp_plus. f_equal.
    rewrite !Z.pow_2_r, !mult_IZR. field. lra. }
  rewrite R, exp_pow. unfold after, density, dividend. rewrite G, <- exp_plus. apply Raux.exp_le.
  rewrite !Z.pow_2_r, !mult_IZR, plus_IZR, Nat2Z.inj_add, plus_IZR, <- (INR_IZR_INZ h).
  set (d := IZR (denominator l)). set (x := INR h). change (IZR (Z.of_nat 62)) with 62.
  assert (X : 0 <= x * x - x).
  { unfold x. destruct h as [|h]; [simpl; lra|]. rewrite S_INR. generalize (pos_INR h). intros Y. nra. }
  replace (- (63 * d * (63 * d) / IZR (divisor l)) + x * - (127 * d * d / IZR (divisor l)))
    with (- ((63 * 63 + 127 * x) * (d * d) / IZR (divisor l))) by (field; lra).
  apply Ropp_le_contravar, Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, P|].
  replace ((62 + x + 1) * d * ((62 + x + 1) * d)) with ((63 * 63 + 126 * x + x * x) * (d * d)) by ring.
  apply Rmult_le_compat_r; [apply Rle_0_sqr|lra].
Qed.

Lemma geometric : ex_series (fun h => density l 63 * r ^ h)
  /\ Series (fun h => density l 63 * r ^ h) = density l 63 / (1 - r).
Proof.
  generalize ratio. intros R. assert (A : Rabs r < 1) by (rewrite Rabs_pos_eq; lra). split.
  - apply (ex_series_scal (K := R_AbsRing) (V := R_NormedModule)), ex_series_geom, A.
  - rewrite Series_scal_l, Series_geom by exact A. reflexivity.
Qed.

Lemma it_converges : ex_series (after 62).
Proof.
  apply (ex_series_le (K := R_AbsRing) (V := R_CompleteNormedModule) _ (fun h => density l 63 * r ^ h)); [|apply
      geometric].
  intros h. generalize (it_falls h). intros H. unfold norm. simpl. unfold abs. simpl. rewrite Rabs_pos_eq; lra.
Qed.

Lemma first_sum_is n : forall i, denote (fold_right (fun k sum => Add (Mul (Whole 2) (term_of_density l (k + 1))) sum)
    (Whole 1) (map Z.of_nat (seq i (S n)))) = 1 + 2 * sum_n (after i) n.
Proof.
  induction n as [|n IH]; intros i.
  - rewrite sum_O. cbn [seq map fold_right]. change (denote (Add ?a ?b)) with (denote a + denote b).
    change (denote (Mul (Whole 2) ?b)) with (2 * denote b). rewrite density_term. unfold after. rewrite Nat.add_0_r.
        simpl. lra.
  - change (seq i (S (S n))) with (i :: seq (S i) (S n)). cbn [map fold_right].
    change (denote (Add ?a ?b)) with (denote a + denote b). rewrite IH.
    change (denote (Mul (Whole 2) ?b)) with (2 * denote b). rewrite density_term.
    rewrite !sum_n_Reals, (decomp_sum (after i)) by lia. cbn [pred].
    rewrite (sum_eq (after (S i)) (fun k => after i (S k))) by (intros k _; unfold after; do 2 f_equal; lia).
    replace (after i 0) with (density l (Z.of_nat i + 1)) by (unfold after; do 2 f_equal; lia). lra.
Qed.

Lemma whole_sum_between : denote (first_sum l) <= whole_sum <= denote (first_sum l) + denote (last_sum l).
Proof.
  assert (F : denote (first_sum l) = 1 + 2 * sum_n (after 0) 61) by apply first_sum_is.
  assert (L : denote (last_sum l) = 2 * (density l 63 / (1 - r))).
  { unfold last_sum. change (denote (Div ?a ?b)) with (denote a / denote b).
    change (denote (Mul (Whole 2) ?b)) with (2 * denote b). change (denote (Sub (Whole 1) ?b)) with (1 - denote b).
    change (denote (Div ?a ?b)) with (denote a / denote b). rewrite !density_term. fold r. generalize ratio. intros.
        field. lra. }
  assert (E : ex_series (after 0)) by (apply (ex_series_incr_n (after 0) 62), it_converges).
  unfold whole_sum. rewrite F, L, (Series_incr_n (after 0) 62) by (lia || exact E). cbn [pred].
  change (Series (fun k => after 0 (62 + k))) with (Series (after 62)). destruct geometric as [X Y].
  generalize (Series_le _ _ it_falls X). rewrite Y. intros Upper.
  assert (Lower : 0 <= Series (after 62)).
  { rewrite <- (Rmult_0_l (Series (after 62))), <- Series_scal_l. apply Series_le; [|exact it_converges].
    intros n. generalize (density_is_positive (Z.of_nat (62 + n) + 1)). unfold after. lra. }
  rewrite sum_n_Reals. lra.
Qed.

Lemma entry_of_a_gaussian d last e : sound_digit l d last = true -> (0 <= e < 63)%Z ->
  IZR (entry_words d e) <= IZR (2 ^ 62) * (IZR (if e =? 0 then 1 else 2)%Z * density l e / whole_sum)
  <= IZR (entry_words d e) + 1.
Proof.
  intros S E. unfold sound_digit in S. repeat rewrite andb_true_iff in S. destruct S as [_ S].
  rewrite forallb_forall in S. specialize (S e (in_indices 63 e E)). unfold entry_fits in S. rewrite G in S.
  rewrite andb_true_iff in S. destruct S as [Low High].
  generalize (bounds_correct (first_sum l)) (bounds_correct (last_sum l)). intros B1 B2.
  generalize (Bounds.add_correct precision _ _ (Xreal _) (Xreal _) B1 B2). intros B.
  set (m := Mul (Whole (2 ^ 62 * (if e =? 0 then 1 else 2))) (term_of_density l e)) in *.
  assert (M : denote m = IZR (2 ^ 62) * (IZR (if e =? 0 then 1 else 2)%Z * density l e)).
  { unfold m. change (denote (Mul ?a ?b)) with (denote a * denote b). rewrite density_term.
    change (denote (Whole ?z)) with (IZR z). rewrite mult_IZR. ring. }
  generalize (below_correct _ _ _ _ (Bounds.mul_correct precision _ _ (Xreal _) (Xreal _) (bounds_correct (Whole
      (entry_words d e))) B)
    (bounds_correct m) Low).
  generalize (below_correct _ _ _ _ (bounds_correct m)
    (Bounds.mul_correct precision _ _ (Xreal _) (Xreal _) (bounds_correct (Whole (entry_words d e + 1))) B1) High).
  rewrite M. change (denote (Whole ?z)) with (IZR z). rewrite plus_IZR. generalize whole_sum_between. intros W Upper
      Lower.
  set (p := IZR (if e =? 0 then 1 else 2)%Z * density l e) in *.
  assert (First : 1 <= denote (first_sum l)).
  { change (first_sum l) with (fold_right (fun k sum => Add (Mul (Whole 2) (term_of_density l (k + 1))) sum) (Whole 1)
      (map Z.of_nat (seq 0 62))). rewrite first_sum_is. assert (0 <= sum_n (after 0) 61); [|lra].
    rewrite sum_n_Reals. apply cond_pos_sum. intros n. apply Rlt_le, density_is_positive. }
  assert (P : 0 < whole_sum) by lra.
  replace (IZR (2 ^ 62) * (p / whole_sum)) with (IZR (2 ^ 62) * p / whole_sum) by (field; lra).
  assert (Q : 0 < IZR (2 ^ 62) * p).
  { apply Rmult_lt_0_compat; [apply IZR_lt; reflexivity|]. apply Rmult_lt_0_compat; [|apply density_is_positive].
    destruct (e =? 0)%Z; lra. }
  set (w := IZR (entry_words d e)) in *. split; [apply (Rle_div_r _ _ _ P)|apply (Rle_div_l _ _ _ P)].
  - destruct (Rle_dec 0 w); nra.
  - assert (0 < w + 1) by nra. nra.
Qed.
End Gaussian.

(* Each entry has its probability of 2^62 words, but for less than one: of a Gaussian, f(e) over the sum of f, for both
   signs. *)
Theorem gaussian_entries_have_their_words l d last e : gaussian l = true -> sound_digit l d last = true ->
  (0 <= e < 63)%Z ->
  IZR (entry_words d e) <= IZR (2 ^ 62) * (IZR (if e =? 0 then 1 else 2)%Z * density l e / whole_sum l)
  <= IZR (entry_words d e) + 1.
Proof.
  intros G S E. assert (H := S). unfold sound_digit in H. repeat rewrite andb_true_iff in H. destruct H as [[_ H] _].
  rewrite G in H. cbn [implb] in H. repeat rewrite andb_true_iff in H. destruct H as [[_ N] D].
  apply Z.leb_le in N, D. exact (entry_of_a_gaussian l G N D d last e S E).
Qed.

Theorem exponential_entries_have_their_words l d last e : gaussian l = false -> sound_digit l d last = true ->
  (0 <= e < 63)%Z ->
  IZR (entry_words d e) <= IZR (2 ^ 62) * denote (entry_probability l d last e) <= IZR (entry_words d e) + 1.
Proof.
  intros G S E. unfold sound_digit in S. repeat rewrite andb_true_iff in S. destruct S as [_ S].
  rewrite forallb_forall in S. specialize (S e (in_indices 63 e E)). unfold entry_fits in S. rewrite G in S.
  rewrite andb_true_iff in S. destruct S as [Low High]. apply at_most_correct in Low, High.
  change (denote (Mul ?a ?b)) with (denote a * denote b) in Low, High. change (denote (Whole ?z)) with (IZR z) in *.
  rewrite plus_IZR in High. lra.
Qed.
