(* Local reports: the probability of a set of reports for one answer and for another, by the models of coins and of
   k-ary reports, and the smallest factor between them. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Dpnoise Require Import Words CoinsModel Coins Mixture.
Import ListNotations.
Open Scope R_scope.

(* No set of reports is more than s times as likely by P as by Q if, and only if, s is r or more. *)
Definition largest_ratio {A : Type} (r : R) (P Q : (A -> bool) -> R) : Prop :=
  forall s, (forall reports, P reports <= s * Q reports) <-> r <= s.

Lemma attained {A : Type} r (P Q : (A -> bool) -> R) report : (forall reports, 0 <= Q reports) ->
  (forall reports, P reports <= r * Q reports) -> P report = r * Q report -> 0 < Q report -> largest_ratio r P Q.
Proof.
  intros Positive Most Equal Some s. split.
  - intros H. specialize (H report). rewrite Equal in H. apply Rmult_le_reg_r in H; assumption.
  - intros H reports. apply Rle_trans with (1 := Most reports). apply Rmult_le_compat_r; auto.
Qed.

(* Of a largest ratio to its logarithm. *)
Lemma at_most_exp r epsilon : 0 < r -> r <= exp epsilon <-> ln r <= epsilon.
Proof.
  intros P. split; intros H.
  - rewrite <- (ln_exp epsilon). destruct H as [H| ->]; [apply Rlt_le, ln_increasing; assumption|apply Rle_refl].
  - rewrite <- (exp_ln r P). destruct H as [H| ->]; [apply Rlt_le, exp_increasing, H|apply Rle_refl].
Qed.

Lemma mean_positive k g : (forall w, 0 <= g w) -> 0 <= mean k g.
Proof. intros H. rewrite <- (mean_const k 0). apply mean_le. auto. Qed.

Lemma one_range b : 0 <= one b <= 1. Proof. destruct b; simpl; lra. Qed.

(* n bits are flipped on planes, as the kernel does it: one is reported as 1 with probability p/2^planes if it is 1, and
   with q/2^planes if it is 0. *)
Record bit_flip := Flip { planes : nat; p : Z; q : Z }.
Definition valid (f : bit_flip) : Prop := (0 < q f < p f)%Z /\ (p f < 2^ planes f)%Z.
Definition probability (f : bit_flip) (n : nat) (row : Z) (reports : list bool -> bool) : R :=
  mean_of (planes f) n (fun random => one (reports (bits n (flip n (p f) (q f) random row)))).

(* The fraction that the code makes of a flip, for reports of one bit and for those of rows with one bit set each. *)
Definition likelihood (f : bit_flip) (one_bit : bool) : Z * Z :=
  let not_p := (2^ planes f - p f)%Z in
  let not_q := (2^ planes f - q f)%Z in
  if one_bit then if (q f * not_q <=? p f * not_p)%Z then (p f, q f) else (not_q, not_p)
  else (p f * not_q, not_p * q f)%Z.
Definition quotient (fraction : Z * Z) : R := IZR (fst fraction) / IZR (snd fraction).

(* At how many of n places only the first of two rows has its bit. *)
Fixpoint count (n : nat) (holds : Z -> bool) : nat :=
  match n with O => O | S n => (if holds 0%Z then 1 else 0) + count n (fun i => holds (i + 1)%Z) end.
Definition only (n : nat) (row other : Z) : nat := count n (fun i => Z.testbit row i && negb (Z.testbit other i)).

Lemma product_each n : forall f g, product (each n (fun i => f i * g i)) = product (each n f) * product (each n g).
Proof.
  induction n as [|n IH]; intros f g; [simpl; ring|]. rewrite !each_S. unfold product in *. cbn [fold_right].
  rewrite (IH (fun i => f (i + 1)%Z) (fun i => g (i + 1)%Z)). ring.
Qed.

Lemma product_positive n : forall f, (forall i, 0 < f i) -> 0 < product (each n f).
Proof.
  induction n as [|n IH]; intros f P; [simpl; lra|]. rewrite each_S. apply Rmult_lt_0_compat; [apply P|].
  apply (IH (fun i => f (i + 1)%Z)). auto.
Qed.

Lemma product_le n : forall f g, (forall i, 0 < f i <= g i) -> product (each n f) <= product (each n g).
Proof.
  induction n as [|n IH]; intros f g L; [simpl; lra|]. rewrite !each_S. apply Rmult_le_compat.
  - apply Rlt_le, L.
  - apply Rlt_le, product_positive. intros i. apply L.
  - apply L.
  - apply (IH (fun i => f (i + 1)%Z) (fun i => g (i + 1)%Z)). auto.
Qed.

(* A sum over all rows of n bits, of which there is one with the bits of a list. *)
Lemma only_row n : forall (g : list bool -> R) l, length l = n ->
  IZR (2^ n) * mean n (fun y => g (bits n y) * one (are Bool.eqb l (bits n y))) = g l.
Proof.
  induction n as [|n IH]; intros g [|b l] L; try discriminate; [unfold bits, each; simpl; ring|]. injection L as L.
  assert (Half : forall c v, (forall w, v w = 2 * w + Z.b2z c)%Z -> IZR (2^ n) * mean n (fun w =>
    g (bits (S n) (v w)) * one (are Bool.eqb (b :: l) (bits (S n) (v w)))) = one (Bool.eqb b c) * g (c :: l)).
  { intros c v V. rewrite <- (IH (fun l => g (c :: l)) l L), <- Rmult_assoc, (Rmult_comm (one _)), Rmult_assoc.
    f_equal. rewrite <- mean_scale. apply mean_ext. intros w _. rewrite V.
    replace (bits (S n) (2 * w + Z.b2z c)) with (c :: bits n w); [cbn [are]; rewrite one_and; ring|].
    unfold bits. rewrite each_S, Z.testbit_0_r. f_equal. apply each_ext. intros i I.
    rewrite Z.add_1_r, Z.testbit_succ_r by lia. reflexivity. }
  cbn [mean]. rewrite pow_S, mult_IZR. transitivity (one (Bool.eqb b false) * g (false :: l)
    + one (Bool.eqb b true) * g (true :: l)); [|destruct b; simpl; ring].
  rewrite <- (Half false (fun w => 2 * w)%Z), <- (Half true (fun w => 2 * w + 1)%Z) by (intros w; simpl; lia). field.
Qed.

Section Flips.
Variable f : bit_flip.
Hypothesis V : valid f.
Let N := IZR (2^ planes f).

Definition bit_chance (bit reported : bool) : R := chance (IZR (if bit then p f else q f) / N) reported.

Lemma numbers : 0 < IZR (q f) < IZR (p f) /\ IZR (p f) < N.
Proof. destruct V as [[A B] C]. repeat split; apply IZR_lt; assumption. Qed.

Lemma bit_chance_is bit reported :
  bit_chance bit reported = let t := IZR (if bit then p f else q f) in (if reported then t else N - t) / N.
Proof. generalize numbers. intros. unfold bit_chance. destruct reported; cbn [chance]; [reflexivity|field; lra]. Qed.

Lemma bit_chance_positive bit reported : 0 < bit_chance bit reported.
Proof. rewrite bit_chance_is. generalize numbers. intros. destruct bit, reported; apply Rdiv_lt_0_compat; lra. Qed.

(* The probability of one report is what `flips_are_exact` proves of the code's model. *)
Definition law (n : nat) (row y : Z) : R := product (each n (fun i => bit_chance (Z.testbit row i) (Z.testbit y i))).

Theorem report_probability n row y : probability f n row (fun report => are Bool.eqb report (bits n y)) = law n row y.
Proof. destruct V. apply flips_are_exact; lia. Qed.

(* So a set of reports has the sum of their probabilities. *)
Theorem reports_probability n row reports :
  probability f n row reports = IZR (2^ n) * mean n (fun y => one (reports (bits n y)) * law n row y).
Proof.
  transitivity (mean_of (planes f) n (fun random => mean n (fun y => IZR (2^ n) * (one (reports (bits n y)) *
    one (are Bool.eqb (bits n (flip n (p f) (q f) random row)) (bits n y)))))).
  - apply mean_of_ext. intros random _. rewrite mean_scale. symmetry. apply (only_row n (fun l => one (reports l))).
    unfold bits, each. generalize 0%Z (Z.testbit (flip n (p f) (q f) random row)). clear.
    induction n; intros; simpl; [reflexivity|]. f_equal. apply IHn.
  - rewrite <- mean_scale, <- (mean_of_mean n (planes f) n (fun y random => _)). apply mean_ext. intros y _.
    rewrite !mean_of_scale. rewrite <- report_probability. reflexivity.
Qed.

Lemma law_positive n row y : 0 < law n row y.
Proof. apply product_positive. intros i. apply bit_chance_positive. Qed.

Lemma probability_positive n row reports : 0 <= probability f n row reports.
Proof.
  rewrite reports_probability. apply Rmult_le_pos; [apply IZR_le, Z.lt_le_incl, pow_positive|]. apply mean_positive.
  intros y. apply Rmult_le_pos; [apply one_range|apply Rlt_le, law_positive].
Qed.

(* What a place contributes to the ratio, at the most, and if its own bit is reported. *)
Let a := IZR (p f) / IZR (q f).
Let b := (N - IZR (q f)) / (N - IZR (p f)).
Definition at_place (bit other : bool) : R := if bit then if other then 1 else a else if other then b else 1.

Lemma factors : 1 < a /\ 1 < b.
Proof. generalize numbers. unfold a, b. split; apply Rlt_div_r; lra. Qed.

Lemma place_at_most bit other reported : bit_chance bit reported <= at_place bit other * bit_chance other reported.
Proof.
  generalize numbers factors. intros H A. assert (I : 0 < / N) by (apply Rinv_0_lt_compat; lra).
  assert (M : forall x y g, 0 < y -> x <= y -> 1 < g -> x / N <= g * (y / N)).
  { intros. unfold Rdiv. rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [lra|nra]. }
  rewrite !bit_chance_is. destruct bit, other, reported; unfold at_place; cbv zeta;
    try (right; unfold a, b; field; lra); apply M; lra.
Qed.

Lemma place_attained bit other : bit_chance bit bit = at_place bit other * bit_chance other bit.
Proof.
  rewrite !bit_chance_is. generalize numbers. intros. destruct bit, other; unfold at_place, a, b; simpl; field; lra.
Qed.

Definition ratio (n : nat) (row other : Z) : R := a ^ only n row other * b ^ only n other row.

Lemma ratio_is n row other :
  ratio n row other = product (each n (fun i => at_place (Z.testbit row i) (Z.testbit other i))).
Proof.
  unfold ratio, only. generalize (Z.testbit row) (Z.testbit other). clear V.
  induction n as [|n IH]; intros x y; [simpl; ring|]. rewrite each_S. unfold product in *. cbn [fold_right count].
  rewrite <- (IH (fun i => x (i + 1)%Z) (fun i => y (i + 1)%Z)).
  destruct (x 0%Z), (y 0%Z); unfold at_place; simpl; ring.
Qed.

(* Between any two rows the largest ratio is a power of p/q by a power of (1 - q)/(1 - p). *)
Theorem rows_ratio n row other :
  largest_ratio (ratio n row other) (probability f n row) (probability f n other).
Proof.
  apply attained with (fun report => are Bool.eqb report (bits n row)); [apply probability_positive| | |].
  - intros reports. rewrite !reports_probability, <- Rmult_assoc, (Rmult_comm (ratio n row other)), Rmult_assoc.
    apply Rmult_le_compat_l; [apply IZR_le, Z.lt_le_incl, pow_positive|]. rewrite <- mean_scale. apply mean_le.
    intros y _.
    assert (law n row y <= ratio n row other * law n other y).
    { rewrite ratio_is. unfold law. rewrite <- product_each. apply product_le. intros i.
      split; [apply bit_chance_positive|apply place_at_most]. }
    generalize (one_range (reports (bits n y))). nra.
  - rewrite !report_probability, ratio_is. unfold law. rewrite <- product_each. f_equal. apply each_ext. intros i _.
    apply place_attained.
  - rewrite report_probability. apply law_positive.
Qed.

(* Unary encoding: a row has the bit of an answer below k, or none. *)
Definition encode (answer : option Z) : Z := match answer with Some i => 2 ^ i | None => 0 end.
Definition possible (k : nat) (answer : option Z) : Prop :=
  match answer with Some i => (0 <= i < Z.of_nat k)%Z | None => True end.

Lemma only_here k x y : possible k x -> possible k y -> only k (encode x) (encode y) =
  match x, y with Some i, Some j => if (j =? i)%Z then 0 else 1 | Some _, None => 1 | None, _ => 0 end%nat.
Proof.
  assert (One : forall n i g h, (forall j, (0 <= j)%Z -> h j = (i =? j)%Z && g j) -> (i < Z.of_nat n)%Z ->
    count n h = if (0 <=? i)%Z && g i then 1%nat else 0%nat).
  { clear. induction n as [|n IH]; intros i g h H I; cbn [count]; [destruct (Z.leb_spec 0 i); [lia|reflexivity]|].
    rewrite (IH (i - 1)%Z (fun j => g (j + 1)%Z)) by (lia || (intros j J; rewrite H by lia;
      destruct (Z.eqb_spec i (j + 1)), (Z.eqb_spec (i - 1) j); reflexivity || lia)).
    rewrite H, Z.sub_add by lia. destruct (Z.eqb_spec i 0) as [->|]; [destruct (g 0%Z); reflexivity|].
    destruct (Z.leb_spec 0 (i - 1)), (Z.leb_spec 0 i); reflexivity || lia. }
  unfold only. destruct x as [i|]; cbn [encode possible]; intros I J.
  - rewrite (One k i (fun i => negb (Z.testbit (encode y) i))) by (try lia; intros; rewrite Z.pow2_bits_eqb by lia;
      reflexivity). rewrite (proj2 (Z.leb_le 0 i)) by lia. destruct y as [j|]; cbn [encode possible] in *.
    + rewrite Z.pow2_bits_eqb by lia. destruct (j =? i)%Z; reflexivity.
    + rewrite Z.bits_0. reflexivity.
  - rewrite (One k (-1)%Z (fun _ => true)); [reflexivity| |lia]. intros j J'. rewrite Z.bits_0.
    destruct (Z.eqb_spec (-1) j); [lia|reflexivity].
Qed.

Lemma fraction_of_rows : quotient (likelihood f false) = a * b.
Proof.
  unfold quotient, likelihood, a, b, N. cbn [fst snd]. rewrite !mult_IZR, !minus_IZR. generalize numbers. fold N.
  intros. field. lra.
Qed.

(* Two answers, and an answer and none, of which neither costs as much. *)
Theorem answers_ratio k i j : possible k (Some i) -> possible k (Some j) -> i <> j -> largest_ratio
  (quotient (likelihood f false)) (probability f k (encode (Some i))) (probability f k (encode (Some j))).
Proof.
  intros I J D. generalize (rows_ratio k (encode (Some i)) (encode (Some j))). unfold ratio.
  rewrite !only_here, (proj2 (Z.eqb_neq j i)), (proj2 (Z.eqb_neq i j)), !pow_1, fraction_of_rows by auto. auto.
Qed.

Theorem no_answer_ratio k i : possible k (Some i) ->
  largest_ratio (IZR (p f) / IZR (q f)) (probability f k (encode (Some i))) (probability f k (encode None)) /\
  largest_ratio ((N - IZR (q f)) / (N - IZR (p f))) (probability f k (encode None)) (probability f k (encode (Some i)))
  /\ Rmax (IZR (p f) / IZR (q f)) ((N - IZR (q f)) / (N - IZR (p f))) < quotient (likelihood f false).
Proof.
  intros I. generalize (rows_ratio k (encode (Some i)) (encode None)) (rows_ratio k (encode None) (encode (Some i))).
  unfold ratio. rewrite !only_here, !pow_1, pow_O, Rmult_1_r, Rmult_1_l, fraction_of_rows by exact I || exact Logic.I.
  intros A B. split; [exact A|]. split; [exact B|]. fold a b. generalize factors. intros F. apply Rmax_lub_lt; nra.
Qed.

(* So unary encoding is epsilon-locally differentially private, rows without a bit included, if and only if epsilon is
   at least the logarithm of the fraction. *)
Theorem unary_encoding_is_private k epsilon : (2 <= k)%nat ->
  (forall x y reports, possible k x -> possible k y ->
    probability f k (encode x) reports <= exp epsilon * probability f k (encode y) reports)
  <-> ln (quotient (likelihood f false)) <= epsilon.
Proof.
  intros K. generalize factors. intros A.
  rewrite <- at_most_exp by (rewrite fraction_of_rows; nra). split.
  - intros P. apply (answers_ratio k 0 1); [simpl; lia..|]. intros reports. apply P; simpl; lia.
  - intros E x y reports X Y. apply rows_ratio. unfold ratio. rewrite !only_here by assumption.
    apply Rle_trans with (2 := E). rewrite fraction_of_rows.
    destruct x as [i|], y as [j|]; rewrite ?(Z.eqb_sym j i); try destruct (i =? j)%Z; simpl; nra.
Qed.

(* Randomised response is private, of one bit, if and only if epsilon is at least the logarithm of its fraction. *)
Theorem randomized_response_is_private epsilon :
  (forall x y reports, probability f 1 (Z.b2z x) reports <= exp epsilon * probability f 1 (Z.b2z y) reports)
  <-> ln (quotient (likelihood f true)) <= epsilon.
Proof.
  generalize numbers factors. intros H A.
  assert (Max : quotient (likelihood f true) = Rmax a b).
  { set (i := / (IZR (q f) * (N - IZR (p f)))). assert (I : 0 < i) by (apply Rinv_0_lt_compat, Rmult_lt_0_compat; lra).
    assert (D : a - b = (IZR (p f) * (N - IZR (p f)) - IZR (q f) * (N - IZR (q f))) * i)
      by (unfold a, b, i; field; lra).
    unfold likelihood, quotient. destruct (Z.leb_spec (q f * (2^ planes f - q f)) (p f * (2^ planes f - p f))) as [G|G];
      [apply IZR_le in G|apply IZR_lt in G]; rewrite !mult_IZR, !minus_IZR in G; fold N in G; cbn [fst snd].
    - rewrite Rmax_left by nra. reflexivity.
    - rewrite Rmax_right, !minus_IZR by nra. reflexivity. }
  assert (R : forall x y, largest_ratio (at_place x y) (probability f 1 (Z.b2z x)) (probability f 1 (Z.b2z y))).
  { intros x y. replace (at_place x y) with (ratio 1 (Z.b2z x) (Z.b2z y)); [apply rows_ratio|]. rewrite ratio_is.
    destruct x, y; simpl; ring. }
  rewrite <- at_most_exp by (rewrite Max; generalize (Rmax_l a b); lra). rewrite Max. split.
  - intros P. apply Rmax_lub; [apply (R true false)|apply (R false true)]; intros; apply P.
  - intros E x y reports. apply R. apply Rle_trans with (2 := E). generalize (Rmax_l a b) (Rmax_r a b).
    destruct x, y; simpl; lra.
Qed.
End Flips.

(* The probability that further words suffice and the k-ary report of a value, as mixture.rs makes it, is in a set. *)
Definition mixed (k planes keep : Z) (further : nat) (value : Z) (reports : Z -> bool) : R :=
  mean_of 1 (coin_bits planes) (fun coins => mean_of 1 (index_bits k) (fun words => mean_of further (index_bits k)
    (fun more => match mix k planes keep [value] coins words more with
      | Some ([report], _) => one (reports report) | _ => 0 end))).

(* The fraction that the code makes of a mixture. *)
Definition mixture_likelihood (k planes keep : Z) : Z * Z :=
  let other := (2 ^ planes - keep)%Z in (other + keep * k, other)%Z.

Lemma mean_of_in n bits : forall g h, (forall ws, List.Forall (fun w => 0 <= w < 2^ bits)%Z ws -> g ws = h ws) ->
  mean_of n bits g = mean_of n bits h.
Proof.
  induction n as [|n IH]; intros g h E; cbn [mean_of]; [apply E; constructor|]. apply mean_ext. intros w W. apply IH.
  intros ws F. apply E. constructor; assumption.
Qed.

Lemma mean_of_positive n bits : forall g, (forall ws, 0 <= g ws) -> 0 <= mean_of n bits g.
Proof.
  induction n as [|n IH]; intros g P; [apply P|]. apply mean_positive. intros w. apply IH. auto.
Qed.

Lemma total_ext k g h : (forall v, (0 <= v < k)%Z -> g v = h v) -> total k g = total k h.
Proof. intros E. unfold total. f_equal. apply each_ext. intros v W. apply E. lia. Qed.

Lemma mean_of_a_total n bits k s : forall g, mean_of n bits (fun ws => total k (fun v => s v * g v ws))
  = total k (fun v => s v * mean_of n bits (g v)).
Proof.
  induction n as [|n IH]; intros g; [reflexivity|]. cbn [mean_of].
  rewrite (mean_ext _ _ _ (fun w _ => IH (fun v ws => g v (w :: ws)))). etransitivity; [apply mean_of_total|].
  apply total_ext. intros v _. apply mean_scale.
Qed.

Lemma total_le k g h : (forall v, g v <= h v) -> total k g <= total k h.
Proof.
  unfold total. revert g h. induction (Z.to_nat k) as [|n IH]; intros g h L; [simpl; lra|]. rewrite !each_S.
  apply Rplus_le_compat; [apply L|]. apply (IH (fun v => g (v + 1)%Z) (fun v => h (v + 1)%Z)). auto.
Qed.

Section Mixtures.
Variables k planes keep : Z.
Hypothesis K : (2 <= k <= 2 ^ 32)%Z.
Hypothesis P : (0 <= planes <= 64)%Z.
Hypothesis H : (0 < keep < 2 ^ planes)%Z.

Lemma index_bits_suffice : (0 < k <= 2^ index_bits k)%Z.
Proof. unfold index_bits. destruct (Z.leb_spec k 256); [change (2^ 16)%Z with 65536%Z|]; lia. Qed.

Lemma index_range : forall words x left, List.Forall (fun w => 0 <= w < 2^ index_bits k)%Z words ->
  index (index_bits k) k words = Some (x, left) -> (0 <= x < k)%Z.
Proof.
  induction words as [|w words IH]; intros x left F; [discriminate|]. inversion F; subst. cbn [index].
  destruct (is_rejected _ k w); [apply IH; assumption|]. intros E. injection E as <- _. unfold value_of.
  split; [apply Z.div_pos; [lia|apply pow_positive]|]. apply Z.div_lt_upper_bound; [apply pow_positive|nia].
Qed.

(* A set of reports has the sum of the probabilities that `reports_are_exact` proves of the code's model. *)
Theorem mixture_probability further value reports : (0 <= value < k)%Z -> mixed k planes keep further value reports
  = enough (index_bits k) k 1 further
    * total k (fun y => one (reports y) * Mixture.probability k planes keep value y).
Proof.
  intros X. transitivity (total k (fun y => one (reports y) * mean_of 1 (coin_bits planes) (fun coins =>
    mean_of 1 (index_bits k) (fun words => mean_of further (index_bits k) (fun more =>
      match mix k planes keep [value] coins words more with
      | Some (drawn, _) => one (are Z.eqb drawn [y]) | None => 0 end))))).
  - assert (Nothing : 0 = total k (fun y => one (reports y) * 0)).
    { rewrite (total_ext k _ (fun _ => 0)) by (intros; ring). rewrite total_constant by lia. ring. }
    rewrite <- mean_of_a_total. apply mean_of_in. intros coins _. rewrite <- mean_of_a_total. apply mean_of_in.
    intros words W. rewrite <- mean_of_a_total. apply mean_of_in. intros more M. unfold mix.
    destruct (indices _ k words more) as [[others left]|] eqn:E; [|exact Nothing].
    destruct coins as [|coin coins], others as [|other others]; try exact Nothing. cbn [CoinsModel.reports].
    assert (R : (0 <= report (coin_bits planes) planes keep value coin other < k)%Z).
    { unfold report. destruct (is_kept _ _ _ _); [exact X|]. destruct words as [|word words]; [discriminate|].
      cbn [indices] in E. destruct (index _ k (word :: more)) as [[x rest]|] eqn:I; [|discriminate].
      destruct (indices _ k words rest) as [[xs rest']|]; [|discriminate]. injection E as <- _ _.
      apply (index_range _ _ _) in I; [exact I|]. inversion W. constructor; assumption. }
    rewrite <- (total_select k (fun y => one (reports y)) _ R). apply total_ext. intros y _. cbn [are].
    rewrite andb_true_r. reflexivity.
  - transitivity (total k (fun y => enough (index_bits k) k 1 further
      * (one (reports y) * Mixture.probability k planes keep value y) + 0)); [|rewrite total_affine by lia; ring].
    apply total_ext. intros y Y. etransitivity;
      [apply f_equal, (reports_are_exact k planes keep further [value] [y]); try lia; [reflexivity|repeat constructor;
        apply Y]|]. cbn [combine map length]. unfold product. simpl. ring.
Qed.

Lemma probabilities x y z : let r := quotient (mixture_likelihood k planes keep) in
  let chance := Mixture.probability k planes keep in
  0 < chance y z /\ chance x z <= r * chance y z /\ (x <> y -> chance x x = r * chance y x).
Proof.
  cbv zeta. unfold quotient, mixture_likelihood, Mixture.probability. cbn [fst snd]. rewrite Z.eqb_refl, !plus_IZR.
  assert (D : 0 < IZR (k * 2 ^ planes)) by (apply IZR_lt; nia). set (d := IZR (k * 2 ^ planes)) in *.
  assert (O : 0 < IZR (2 ^ planes - keep)) by (apply IZR_lt; lia). set (o := IZR (2 ^ planes - keep)) in *.
  assert (S : 0 < IZR (keep * k)) by (apply IZR_lt; nia). rewrite (Z.mul_comm k keep).
  set (s := IZR (keep * k)) in *. assert (R : 0 < s * s / o) by (apply Rdiv_lt_0_compat; nra).
  assert (C : forall c c', 0 <= c' -> c <= (o + s) / o * c' -> c / d <= (o + s) / o * (c' / d)).
  { intros c c' _ L. unfold Rdiv at 1 3. rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [|exact L].
    apply Rlt_le, Rinv_0_lt_compat, D. }
  split; [|split].
  - apply Rdiv_lt_0_compat; [|exact D]. destruct (y =? z)%Z; fold s; lra.
  - apply C; destruct (x =? z)%Z, (y =? z)%Z; fold s; try lra;
      try replace ((o + s) / o * (o + s)) with (o + 2 * s + s * s / o) by (field; lra);
      try replace ((o + s) / o * (o + 0)) with (o + s) by (field; lra); lra.
  - intros N. rewrite (proj2 (Z.eqb_neq y x)) by auto. field. lra.
Qed.

(* So k-ary response is private, for any number of further words, if and only if epsilon is at least the logarithm of
   its fraction. *)
Theorem mixture_is_private epsilon : (forall further x y reports, (0 <= x < k)%Z -> (0 <= y < k)%Z ->
    mixed k planes keep further x reports <= exp epsilon * mixed k planes keep further y reports)
  <-> ln (quotient (mixture_likelihood k planes keep)) <= epsilon.
Proof.
  destruct (probabilities 0 1 0) as [Q [_ Equal]].
  rewrite <- at_most_exp.
  2: { unfold quotient, mixture_likelihood. cbn [fst snd]. apply Rdiv_lt_0_compat; apply IZR_lt; nia. }
  set (r := quotient _) in *. split.
  - intros All. specialize (All 4%nat 0%Z 1%Z (fun y => y =? 0)%Z ltac:(lia) ltac:(lia)).
    rewrite !mixture_probability in All by lia.
    assert (One : forall x, total k (fun y => one (y =? 0)%Z * Mixture.probability k planes keep x y)
      = Mixture.probability k planes keep x 0).
    { intros x. rewrite <- (total_select k (Mixture.probability k planes keep x) 0) by lia. apply total_ext.
      intros y _. rewrite Z.eqb_sym. ring. }
    rewrite !One, Equal in All by discriminate.
    generalize (words_suffice (index_bits k) k index_bits_suffice 1 4). intros Enough.
    set (e := enough _ _ _ _) in *. assert (0 < e) by (simpl in Enough; lra).
    apply Rmult_le_reg_r with (e * Mixture.probability k planes keep 1 0); nra.
  - intros E further x y reports X Y. rewrite !mixture_probability by assumption.
    rewrite <- Rmult_assoc, (Rmult_comm (exp _)), Rmult_assoc. apply Rmult_le_compat_l.
    + apply mean_of_positive. intros words. apply mean_of_positive. intros more.
      destruct (indices _ k words more) as [[xs left]|]; lra.
    + rewrite <- (Rplus_0_r (exp _ * _)), <- (Rmult_0_r (IZR k)), <- total_affine by lia. apply total_le.
      intros v. destruct (probabilities x y v) as [A [B _]]. fold r in B.
      apply (Rmult_le_compat_r _ _ _ (Rlt_le _ _ A)) in E.
      destruct (reports v); cbn [one]; lra.
Qed.
End Mixtures.
