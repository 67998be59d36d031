(* When tables are sound for a distribution: what the proof of exactness rests on, and its decision. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Floats SpecFloat.
From Flocq Require Import Core BinarySingleNaN.
From Flocq Require IEEE754.PrimFloat.
From Dpnoise Require Import Rounding Decide Model Machine Words.
Import ListNotations.
Open Scope Z_scope.

(* A distribution over the integers, or those from 0 on, by its rational scale n/d: P(x) is proportional to f(|x|) with
   f(x) = exp(-x d / n) or, for a Gaussian, exp(-x^2 d^2 / (2 n^2)). *)
Record law := Law { gaussian : bool; two_sided : bool; numerator : Z; denominator : Z }.

(* The exponent of f at x is dividend x / divisor. *)
Definition dividend (l : law) (x : Z) : Z := if gaussian l then (x * denominator l) ^ 2 else x * denominator l.
Definition divisor (l : law) : Z := if gaussian l then 2 * numerator l ^ 2 else numerator l.
Definition density (l : law) (x : Z) : R := exp (- (IZR (dividend l x) / IZR (divisor l))).

Notation term_of_density l x := (Exp (Sub (Whole 0) (Div (Whole (dividend l x)) (Whole (divisor l))))).

Lemma density_term l x : denote (term_of_density l x) = density l x.
Proof. simpl. unfold density. f_equal. ring. Qed.

Definition indices (n : nat) : list Z := map Z.of_nat (seq 0 n).

Lemma in_indices n i : 0 <= i < Z.of_nat n -> In i (indices n).
Proof. intros H. unfold indices. rewrite <- (Z2Nat.id i) by lia. apply in_map, in_seq. lia. Qed.

(* m 2^e of a bin, and its first value; bin 63 begins where the tail does. *)
Definition copies (t : tables) (bin : Z) : Z := 2 ^ (match signs t with Folded => if bin =? 0 then e_of bin else e_of
  bin + 1 | _ => e_of bin end).
Definition first_of (t : tables) (bin : Z) : Z := start_of bin * 2 ^ (e_of bin + shift t).
Definition signs_per_bin (t : tables) : Z := match signs t with Folded => 2 | _ => 1 end.

(* How many of the 2^32 bin words lead to a bin. *)
Definition words_of (t : tables) (bin : Z) : Z :=
  sum 6 (fun column =>
    let entry := item (alias t) column in
    (if column =? bin then Z.shiftr entry 6 else 0) + (if Z.land entry 63 =? bin then 2 ^ 26 - Z.shiftr entry 6 else
      0)).

(* The rate, log2(e) times the exponent of f at 1, as a double: times ln(2), over that exponent; within six units of
   rounding of 1. *)
Definition term_of_rate (l : law) (rate : float) : term :=
  let '(m, e) := parts rate in
  Mul (Div (Whole (m * divisor l)) (Whole (2 ^ (- e) * dividend l 1))) Log2.
Definition sound_rate (l : law) (rate : float) : bool :=
  let near := Div (Whole 6) (Whole (2 ^ 53)) in
  PrimFloat.is_finite rate && (let '(m, e) := parts rate in (1 <=? m) && (m <? 2 ^ 53) && (-300 <=? e) && (e <=? 0))
  && at_most (Sub (Whole 1) near) (term_of_rate l rate) && at_most (term_of_rate l rate) (Add (Whole 1) near).

Definition sound_integers (l : law) (t : tables) : bool :=
  (1 <=? numerator l) && (1 <=? denominator l) && Bool.eqb (square t) (gaussian l)
  && match signs t with One => negb (two_sided l) | _ => two_sided l end
  && (0 <=? shift t) && (shift t <=? 50) && match signs t with Folded => shift t =? 0 | _ => true end
  && (1 <=? amplitude t) && (amplitude t <? 2 ^ 32) && PrimFloat.eqb (window t) 0x1p-28
  && forallb (fun entry => (0 <=? entry) && (Z.shiftr entry 6 <? 2 ^ 26)) (alias t)
  && forallb (fun w => (1 <=? w) && (w <? 2 ^ 32)) (weights t)
  && (length (alias t) =? 64)%nat && (length (weights t) =? 64)%nat && (total (weights t) =? 2 ^ 32)
  && forallb (fun bin => words_of t bin =? item (weights t) bin) (indices 64).

(* C m 2^e f(x) <= W for the first value of each bin; in the tail C m f(x) <= W 2^s (1 - q) for the ratio q of f at the
   tail's second value and at its first one, for a Gaussian of q(k) = exp(-x k / sigma^2). *)
Definition tail_ratio (l : law) (t : tables) : term :=
  Exp (Sub (Whole 0) (Div (Whole (if gaussian l then 2 * first_of t 63 * denominator l ^ 2 else denominator l)) (Whole
    (divisor l)))).
Definition room (l : law) (t : tables) (bin : Z) : bool :=
  at_most (Mul (Whole (amplitude t * copies t bin)) (term_of_density l (first_of t bin))) (Whole (item (weights t)
    bin)).
Definition tail_room (l : law) (t : tables) : bool :=
  at_most (Mul (Whole (amplitude t * signs_per_bin t)) (term_of_density l (first_of t 63)))
          (Mul (Whole (item (weights t) 63 * 2 ^ shift t)) (Sub (Whole 1) (tail_ratio l t))).

Definition sound (l : law) (t : tables) : bool :=
  sound_integers l t && sound_rate l (rate t) && forallb (room l t) (indices 63) && tail_room l t.

(* How many of 2^62 words lead to an entry. *)
Definition entry_words (d : digit) (e : Z) : Z :=
  sum 6 (fun column =>
    (if column =? e then item (thresholds d) column else 0)
    + (if item (entries d) column =? e then 2 ^ 56 - item (thresholds d) column else 0)).

(* The probability of entry e of a digit with step s, where q = f(s): of a first digit with two signs, 2 q^e (1 - q) /
   (1 + q) for e > 0; of others q^e (1 - q); divided by what entries up to 62 have of it, where 62 is the largest one.
   *)
Definition entry_probability (l : law) (d : digit) (last : bool) (e : Z) : term :=
  let q := term_of_density l (step d) in
  let closing := if last then Whole 1 else Sub (Whole 1) (term_of_density l ((if signed d then 62 else 63) * step d)) in
  if signed d && (e =? 0) then Div (Sub (Whole 1) q) (Add (Whole 1) q)
  else Div (Mul (Mul (Whole (if signed d then 2 else 1)) (Sub (Whole 1) q)) (term_of_density l (e * step d)))
           (Mul (if signed d then Add (Whole 1) q else Whole 1) closing).

(* The sum of a Gaussian's f over all integers: up to 62, and at most what follows. *)
Definition first_sum (l : law) : term :=
  fold_right (fun k sum => Add (Mul (Whole 2) (term_of_density l (k + 1))) sum) (Whole 1) (indices 62).
Definition last_sum (l : law) : term :=
  Div (Mul (Whole 2) (term_of_density l 63)) (Sub (Whole 1) (Div (term_of_density l 64) (term_of_density l 63))).

(* No entry has more words than its probability, and each one at most a word less. *)
Definition entry_fits (l : law) (d : digit) (last : bool) (first whole : Bounds.type) (e : Z) : bool :=
  if gaussian l then
    let scaled := bounds (Mul (Whole (2 ^ 62 * if e =? 0 then 1 else 2)) (term_of_density l e)) in
    below (Bounds.mul precision (bounds (Whole (entry_words d e))) whole) scaled
    && below scaled (Bounds.mul precision (bounds (Whole (entry_words d e + 1))) first)
  else
    let scaled := bounds (Mul (entry_probability l d last e) (Whole (2 ^ 62))) in
    below (bounds (Whole (entry_words d e))) scaled && below scaled (bounds (Whole (entry_words d e + 1))).

Definition sound_digit (l : law) (d : digit) (last : bool) : bool :=
  forallb (fun threshold => (0 <=? threshold) && (threshold <? 2 ^ 56)) (thresholds d)
  && (length (thresholds d) =? 64)%nat && (total (map (entry_words d) (indices 64)) =? 2 ^ 62)
  && (1 <=? entry_words d 63) && (entry_words d 63 <=? 64)
  && implb (gaussian l) ((step d =? 1) && signed d && last && (1 <=? numerator l) && (1 <=? denominator l))
  && let first := bounds (first_sum l) in
     forallb (entry_fits l d last first (Bounds.add precision first (bounds (last_sum l)))) (indices 63).

(* Aliases are entries, and all entries from 63 on together have at most one of 2^62 words: f of a Gaussian is at most
   2^-64 there. *)
Definition sound_rest (l : law) (d : digit) (last : bool) : bool :=
  forallb (fun e => (0 <=? e) && (e <=? 63)) (entries d)
  && implb last
       (if gaussian l then at_most (Mul (Whole (2 ^ 64)) (term_of_density l 63)) (Whole 1)
        else at_most (Mul (Whole (if signed d then 2 ^ 63 else 2 ^ 62)) (term_of_density l (63 * step d)))
                     (if signed d then Add (Whole 1) (term_of_density l (step d)) else Whole 1)).

(* Each digit's step is that of the one before times as many entries as that one has, and only the first has signs. *)
Fixpoint sound_from (l : law) (signs : bool) (next : Z) (digits : list digit) : bool :=
  match digits with
  | [] => false
  | d :: more =>
      let last := match more with [] => true | _ => false end in
      (step d =? next) && Bool.eqb (signed d) signs && sound_digit l d last && sound_rest l d last
      && (last || sound_from l false (next * if signs then 62 else 63) more)
  end.
Definition sound_digits (l : law) (digits : list digit) : bool :=
  (1 <=? numerator l) && (1 <=? denominator l) && sound_from l (two_sided l) 1 digits.

Section Facts.
Variables (l : law) (t : tables).

Record facts : Prop := Facts {
  numerator_positive : 1 <= numerator l;
  denominator_positive : 1 <= denominator l;
  same_shape : square t = gaussian l;
  shift_range : 0 <= shift t <= 50;
  folded_without_shift : signs t = Folded -> shift t = 0;
  amplitude_range : 1 <= amplitude t < 2 ^ 32;
  window_value : is (window t) (1 / 268435456)%R;
  rate_value : exists d, is (rate t) (IZR (dividend l 1) / IZR (divisor l) / ln 2 * (1 + d))%R
    /\ (Rabs d <= 6 / 9007199254740992)%R;
  rate_range : exists v, is (rate t) v /\ (bpow radix2 (-300) <= v <= bpow radix2 53)%R;
  entry_range : forall c, 0 <= c < 64 -> 0 <= item (alias t) c /\ Z.shiftr (item (alias t) c) 6 < 2 ^ 26;
  weight_range : forall h, 0 <= h < 64 -> 1 <= item (weights t) h < 2 ^ 32;
  words_are_weights : forall h, 0 <= h < 64 -> words_of t h = item (weights t) h;
  weights_have_room : forall h, 0 <= h < 63 ->
    (IZR (amplitude t * copies t h) * density l (first_of t h) <= IZR (item (weights t) h))%R;
  tail_has_room :
    (IZR (amplitude t * signs_per_bin t) * density l (first_of t 63)
     <= IZR (item (weights t) 63 * 2 ^ shift t) * (1 - denote (tail_ratio l t)))%R }.

Lemma item_in (p : Z -> bool) items i : forallb p items = true -> length items = 64%nat -> 0 <= i < 64
  -> p (item items i) = true.
Proof. intros H L I. rewrite forallb_forall in H. apply H. unfold item. apply nth_In. lia. Qed.

Lemma divisor_positive : 1 <= numerator l -> 0 < divisor l.
Proof. intros H. unfold divisor. destruct (gaussian l); [|lia].
assert (0 < numerator l ^ 2) by (apply Z.pow_pos_nonneg; lia). lia. Qed.

Lemma dividend_positive x : 1 <= denominator l -> 0 < x -> 0 < dividend l x.
Proof. intros H I. unfold dividend. assert (0 < x * denominator l) by nia.
destruct (gaussian l); [apply Z.pow_pos_nonneg; lia|lia]. Qed.

Lemma sound_rate_facts r : 1 <= numerator l -> 1 <= denominator l -> sound_rate l r = true ->
  (exists d, is r (IZR (dividend l 1) / IZR (divisor l) / ln 2 * (1 + d))%R /\ (Rabs d <= 6 / 9007199254740992)%R)
  /\ exists v, is r v /\ (bpow radix2 (-300) <= v <= bpow radix2 53)%R.
Proof.
  intros Np Dp. unfold sound_rate. rewrite !andb_true_iff. intros [[[F M] N1] N2].
  rewrite PrimFloat.is_finite_equiv in F.
  assert (R : is r (value r)) by (split; [exact F|reflexivity]).
  generalize (parts_is _ _ R); intros P. unfold term_of_rate in N1, N2. destruct (parts r) as [m e].
  repeat rewrite andb_true_iff in M. destruct M as [[[M1 M2] M3] M4].
  apply Z.leb_le in M1, M3, M4. apply Z.ltb_lt in M2.
  assert (DN : 0 < divisor l) by (apply divisor_positive; assumption).
  assert (DD : 0 < dividend l 1) by (apply dividend_positive; [assumption|lia]).
  apply IZR_lt in DN, DD. assert (L2 : (0 < ln 2)%R) by (rewrite <- ln_1; apply ln_increasing; lra).
  assert (PE : (IZR (2 ^ (- e)) = / bpow radix2 e)%R).
  { rewrite <- bpow_opp, <- IZR_Zpower by lia. reflexivity. }
  assert (PP : (0 < bpow radix2 e)%R) by apply bpow_gt_0.
  split.
  - apply at_most_correct in N1, N2. simpl denote in N1, N2.
    exists (value r * (IZR (divisor l) / IZR (dividend l 1)) * ln 2 - 1)%R. split.
    + replace (IZR (dividend l 1) / IZR (divisor l) / ln 2 * (1 + (value r * (IZR (divisor l) / IZR (dividend l
        1)) * ln 2 - 1)))%R
        with (value r) by (field; repeat split; lra). exact R.
    + assert (V : (IZR (m * divisor l) / IZR (2 ^ (- e) * dividend l 1) * ln 2 = value r * (IZR (divisor l) /
        IZR (dividend l 1)) * ln 2)%R).
      { rewrite <- P. unfold F2R. cbv [Fnum Fexp]. rewrite !mult_IZR, PE. field. repeat split; lra. }
      rewrite V in N1, N2. apply Rabs_le. lra.
  - exists (value r). split; [exact R|]. rewrite <- P. unfold F2R. cbv [Fnum Fexp].
    assert (1 <= IZR m)%R by (apply IZR_le; lia).
    assert (IZR m < bpow radix2 53)%R by (change (bpow radix2 53) with (IZR (2 ^ 53)); apply IZR_lt; lia).
    assert (bpow radix2 (-300) <= bpow radix2 e)%R by (apply bpow_le; lia).
    assert (bpow radix2 e <= 1)%R by (apply (bpow_le radix2 e 0); lia).
    assert (0 < bpow radix2 53)%R by apply bpow_gt_0. split; nra.
Qed.

Theorem sound_facts : sound l t = true -> facts.
Proof.
  unfold sound, sound_integers. intros H. repeat rewrite andb_true_iff in H.
  repeat match goal with H : _ /\ _ |- _ => destruct H end.
  repeat match goal with
    | H : (_ <=? _) = true |- _ => apply Z.leb_le in H
    | H : (_ <? _) = true |- _ => apply Z.ltb_lt in H
    | H : (_ =? _)%nat = true |- _ => apply Nat.eqb_eq in H
  end.
  match goal with H : sound_rate _ _ = true |- _ =>
    destruct (sound_rate_facts _ ltac:(assumption) ltac:(assumption) H) end.
  constructor; try assumption; try (split; assumption).
  - match goal with H : Bool.eqb _ _ = true |- _ => apply eqb_prop in H; exact H end.
  - intros E. match goal with H : match signs t with _ => _ end = true |- _ => rewrite E in H; apply Z.eqb_eq in H;
      exact H end.
  - match goal with H : PrimFloat.eqb _ _ = true |- _ => rename H into W end.
    assert (C : is 0x1p-28%float (1 / 268435456)%R).
    { assert (V : Prim2SF 0x1p-28%float = S754_finite false 4503599627370496 (-80)) by reflexivity.
      unfold is, finite, value. rewrite <- is_finite_SF_B2SF, <- SF2R_B2SF, PrimFloat.B2SF_Prim2B, V.
      split; [reflexivity|]. unfold SF2R, F2R. simpl. lra. }
    rewrite PrimFloat.eqb_equiv in W. destruct C as [CF CV]. unfold is, finite, value in *.
    assert (WF : is_finite (PrimFloat.Prim2B (window t)) = true).
    { unfold Beqb, SFeqb, SFcompare in W. rewrite PrimFloat.B2SF_Prim2B in W.
      rewrite <- is_finite_SF_B2SF, PrimFloat.B2SF_Prim2B.
      destruct (Prim2SF (window t)) as [s|[|]| |]; try reflexivity; discriminate. }
    split; [exact WF|]. rewrite Beqb_correct in W by assumption. rewrite <- CV. revert W.
    case Req_bool_spec; [auto|discriminate].
  - intros c I. match goal with H : forallb _ (alias t) = true |- _ => generalize (item_in _ _ c H ltac:(assumption) I)
      end.
    rewrite andb_true_iff. intros [A B]. apply Z.leb_le in A. apply Z.ltb_lt in B. split; assumption.
  - intros h I. match goal with H : forallb _ (weights t) = true |- _ => generalize (item_in _ _ h H ltac:(assumption)
      I) end.
    rewrite andb_true_iff. intros [A B]. apply Z.leb_le in A. apply Z.ltb_lt in B. split; assumption.
  - intros h I. match goal with H : forallb _ (indices 64) = true |- _ => rewrite forallb_forall in H;
      generalize (H h (in_indices 64 h I)) end.
    apply Z.eqb_eq.
  - intros h I. match goal with H : forallb _ (indices 63) = true |- _ => rewrite forallb_forall in H;
      generalize (H h (in_indices 63 h I)) end.
    intros A. apply at_most_correct in A. rewrite <- density_term. exact A.
  - match goal with H : tail_room _ _ = true |- _ => apply at_most_correct in H; rewrite <- density_term; exact H end.
Qed.
End Facts.
