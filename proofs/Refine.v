(* Decisions that floating point leaves open are right: is U w < a, for a uniform U whose words are drawn as far as they
   are needed? *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Core.
From Dpnoise Require Import Decide Model Sound Trial Mass Values Integers Fixed.
Import ListNotations.
Open Scope R_scope.

(* What a prefix of U says. *)
Definition decided_below (w a : R) (uniform bits : Z) : Prop := (IZR uniform + 1) * w <= a * IZR (2 ^ bits).
Definition decided_above (w a : R) (uniform bits : Z) : Prop := a * IZR (2 ^ bits) <= IZR uniform * w.

(* Bounds that hold at every precision that is used; a weight that is exact has few bits, all of which fit beside
  those of
   the prefix. *)
Definition hold (w a : R) (sides : Z -> (Z * Z) * (Z * Z)) : Prop := forall limbs, (3 <= limbs)%Z ->
  let '((w0, w1), (a0, a1)) := sides limbs in
  (0 <= w0)%Z /\ IZR w0 <= w * IZR (unit limbs) <= IZR w1 /\ IZR a0 <= a * IZR (unit limbs) <= IZR a1
  /\ ((w1 <= w0)%Z -> exists whole, (w0 * 2 ^ 129 = whole * unit limbs)%Z).

Lemma judge_bounds_is_right w a sides limbs uniform bits : hold w a sides -> (3 <= limbs)%Z ->
  (0 <= uniform)%Z -> (0 <= bits <= 64 * limbs - 129)%Z ->
  let '(v, below) := let '(w, a) := sides limbs in judge_bounds limbs uniform bits w a in
  match v with
  | Decided => if below then decided_below w a uniform bits else decided_above w a uniform bits
  | NeedsBits => IZR uniform * w <= a * IZR (2 ^ bits) <= (IZR uniform + 1) * w
  | NeedsPrecision => True
  end.
Proof.
  intros H L U Bits. specialize (H limbs L). destruct (sides limbs) as [[w0 w1] [a0 a1]].
  destruct H as [W0 [W [A Exact]]]. unfold judge_bounds. cbn [fst snd].
  assert (B : (0 < unit limbs)%Z) by (apply Z.pow_pos_nonneg; lia).
  assert (B' : 0 < IZR (unit limbs)) by (apply IZR_lt, B).
  set (ulps := (2 ^ (64 * limbs - bits))%Z). assert (P : (0 < ulps)%Z) by (apply Z.pow_pos_nonneg; lia).
  assert (P' : 0 < IZR ulps) by (apply IZR_lt, P). assert (Q' : 0 < IZR (2 ^ bits)) by (apply IZR_lt,
      Z.pow_pos_nonneg; lia).
  assert (E : IZR (unit limbs) = IZR (2 ^ bits) * IZR ulps).
  { rewrite <- mult_IZR. f_equal. unfold unit, ulps. rewrite <- Z.pow_add_r by lia. f_equal. lia. }
  (* Bounds of u w. *)
  assert (Low : forall u, (0 <= u)%Z -> IZR (times limbs (u * ulps) w0) <= IZR u * IZR ulps * w).
  { intros u H. generalize (down (u * ulps * w0) (unit limbs) B). rewrite times_is, !mult_IZR by lia. intros D.
    assert (0 <= IZR u) by (apply IZR_le, H).
    apply Rle_trans with (IZR u * IZR ulps * IZR w0 / IZR (unit limbs)); [lra|]. apply Rle_div_l; [exact B'|].
    rewrite (Rmult_assoc _ w). apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|]. apply W. }
  assert (High : forall u, (0 <= u)%Z -> IZR u * IZR ulps * w
    <= IZR (if (w0 <? w1)%Z then times limbs (u * ulps) w1 + 1 else times limbs (u * ulps) w0)%Z).
  { intros u H. assert (U' : 0 <= IZR u) by (apply IZR_le, H). destruct (Z.ltb_spec w0 w1) as [Lt|Ge].
    - generalize (down (u * ulps * w1) (unit limbs) B). rewrite plus_IZR, times_is, !mult_IZR by lia. intros D.
      apply Rle_trans with (IZR u * IZR ulps * IZR w1 / IZR (unit limbs)); [|lra]. apply (proj1 (Rle_div_r _ _ _ B')).
      rewrite (Rmult_assoc _ w). apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|]. apply W.
    - destruct (Exact Ge) as [whole X].
      assert (Y : (ulps * w0 = 2 ^ (64 * limbs - bits - 129) * whole * unit limbs)%Z).
      { assert (K : ulps = (2 ^ (64 * limbs - bits - 129) * 2 ^ 129)%Z)
          by (unfold ulps; rewrite <- Z.pow_add_r by lia; f_equal; lia).
        rewrite K, <- (Z.mul_assoc _ whole), <- X. ring. }
      rewrite times_is, <- Z.mul_assoc, Y, Z.mul_assoc, Z.div_mul by lia.
      apply Rmult_le_reg_r with (IZR (unit limbs)); [exact B'|].
      rewrite <- (mult_IZR _ (unit limbs)), <- Z.mul_assoc, <- Y, !mult_IZR, <- Rmult_assoc, (Rmult_assoc _ w).
      apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|]. apply Rle_trans with (IZR w1); [apply W|apply IZR_le, Ge]. }
  assert (Scale : forall x y, x * IZR ulps <= y * IZR (unit limbs) <-> x <= y * IZR (2 ^ bits)).
  { intros x y. rewrite E. split; intros G; nra. }
  assert (Scale' : forall x y, y * IZR (unit limbs) <= x * IZR ulps <-> y * IZR (2 ^ bits) <= x).
  { intros x y. rewrite E. split; intros G; nra. }
  generalize (Low uniform U) (Low (uniform + 1)%Z ltac:(lia)) (High uniform U) (High (uniform + 1)%Z ltac:(lia)).
  rewrite plus_IZR. intros L0 L1 H0 H1.
  set (l0 := times limbs (uniform * ulps) w0) in *. set (l1 := times limbs ((uniform + 1) * ulps) w0) in *.
  set (h0 := if (w0 <? w1)%Z then (times limbs (uniform * ulps) w1 + 1)%Z else l0) in *.
  set (h1 := if (w0 <? w1)%Z then (times limbs ((uniform + 1) * ulps) w1 + 1)%Z else l1) in *.
  unfold decided_below, decided_above.
  destruct (Z.leb_spec h1 a0) as [C|C]; cbn [orb].
  - apply IZR_le in C. apply Scale. lra.
  - destruct (Z.leb_spec a1 l0) as [C'|C'].
    + apply IZR_le in C'. apply Scale'. lra.
    + destruct (Z.leb_spec h0 a0) as [D|D], (Z.leb_spec a1 l1) as [D'|D']; cbn [andb]; try exact I.
      apply IZR_le in D, D'. split; [apply Scale; lra|apply Scale'; lra].
Qed.

(* An answer is right for all further bits of U. *)
Theorem is_below_is_right w a sides : hold w a sides -> forall steps limbs uniform count words answer more words_used,
  (1 <= count)%Z -> (count + 2 <= limbs)%Z -> (0 <= uniform)%Z -> List.Forall (fun word => 0 <= word < 2 ^ 64)%Z words
      ->
  is_below steps sides limbs uniform count words = Some (answer, more, words_used) ->
  (1 <= words_used)%Z /\
  if answer then decided_below w a more (64 * words_used - 1) else decided_above w a more (64 * words_used - 1).
Proof.
  intros H. induction steps as [|steps IH]; intros limbs uniform count words answer more used C L U Ws; [discriminate|].
  cbn [is_below]. generalize (judge_bounds_is_right w a sides limbs uniform (64 * count - 1) H ltac:(lia) U ltac:(lia)).
  destruct (sides limbs) as [w' a']. destruct (judge_bounds _ _ _ _ _) as [[| |] below].
  - intros R E. injection E as <- <- <-. split; assumption.
  - intros _. destruct words as [|word words]; [discriminate|]. inversion Ws; subst.
    apply IH; try assumption; [lia| |lia].
    destruct (Z.ltb_spec limbs (count + 3)); lia.
  - intros _. apply IH; try assumption; lia.
Qed.

(* Bounds at each precision, and densities between theirs. *)
Definition between (x : R) (bounds : Z -> Z * Z) : Prop := forall n, (1 <= n)%Z ->
  IZR (fst (bounds n)) <= x * IZR (unit n) <= IZR (snd (bounds n)).
Definition open (bounds : Z -> Z * Z) : Prop := forall n, (1 <= n)%Z -> (fst (bounds n) < snd (bounds n))%Z.

Theorem coins_hold p bounds : between p bounds -> hold 1 p (coin_sides bounds).
Proof.
  intros H n N. unfold coin_sides. generalize (H n ltac:(lia)). destruct (bounds n) as [low high]. cbn [fst snd].
    intros P.
  assert (U : (0 < unit n)%Z) by (apply Z.pow_pos_nonneg; lia). split; [lia|]. split; [lra|]. split; [exact P|].
  intros _. exists (2 ^ 129)%Z. ring.
Qed.

Section Densities.
Variables (l : law) (at_precision : Z -> constants).
Hypothesis Numerator : (1 <= numerator l)%Z.
Hypothesis Denominator : (1 <= denominator l)%Z.
Hypothesis Constants : forall n, (1 <= n)%Z -> sound_constants (at_precision n) /\ limbs (at_precision n) = n.

Lemma power_between a b : (0 <= a)%Z -> (0 <= b)%Z ->
  between (exp (- slope l * IZR (a * b))) (fun n => power (at_precision n) l a b)
  /\ ((0 < a * b)%Z -> open (fun n => power (at_precision n) l a b)).
Proof.
  intros A B. split; [intros n N|intros P n N]; destruct (Constants n N) as [C L];
    generalize (power_is_between _ C l Numerator Denominator a b A B);
      rewrite L;
    destruct (power _ l a b); cbn [fst snd]; intros [H O]; [exact H|lia].
Qed.

Lemma density_between x : (0 <= x)%Z -> between (density l x) (fun n => density_bounds l at_precision n x).
Proof.
  intros X. replace (density l x) with (exp (- slope l * IZR (x * if gaussian l then x else 1))).
  - unfold density_bounds. destruct (gaussian l); apply power_between; lia.
  - unfold density, slope, dividend. f_equal. destruct (gaussian l);
      rewrite ?Z.pow_2_r, !mult_IZR; unfold Rdiv; ring.
Qed.

End Densities.

Section Sides.
Variables (l : law) (t : tables) (at_precision : Z -> constants).
Hypothesis S : sound l t = true.
Hypothesis Constants : forall n, (1 <= n)%Z -> sound_constants (at_precision n) /\ limbs (at_precision n) = n.
Let facts := sound_facts l t S.
Let powers := power_between l at_precision (numerator_positive _ _ facts) (denominator_positive _ _ facts) Constants.
Let densities := density_between l at_precision (numerator_positive _ _ facts) (denominator_positive _ _ facts)
  Constants.

(* What is compared, with the numbers of the tables. *)
Definition decay_bounds := Integers.decay_bounds l at_precision (tail_start t).
Definition bin_sides weight e x := Integers.bin_sides l at_precision weight (amplitude t * 2 ^ e) x.
Definition tail_sides e :=
  Integers.tail_sides l at_precision (tail_start t) (item (weights t) 63) (2 ^ shift t) (amplitude t * 2 ^ e).

(* A f(x), the right side of both comparisons. *)
Lemma threshold_between e x n : (0 <= e)%Z -> (0 <= x)%Z -> (1 <= n)%Z ->
  let '(low, high) := scaled (amplitude t * 2 ^ e) (density_bounds l at_precision n x) in
  IZR low <= IZR (amplitude t) * (bpow radix2 e * density l x) * IZR (unit n) <= IZR high.
Proof.
  intros E X N. unfold scaled. generalize (densities x X n N).
  destruct (density_bounds l at_precision n x) as [low high]. cbn [fst snd]. intros D.
  assert (P : 0 <= IZR (amplitude t * 2 ^ e)) by (apply IZR_le, Z.mul_nonneg_nonneg;
    [generalize (amplitude_range _ _ facts)|apply Z.pow_nonneg]; lia).
  rewrite !(mult_IZR low), !(mult_IZR high). replace (IZR (amplitude t) * (bpow radix2 e * density l x) * IZR (unit n))
    with (density l x * IZR (unit n) * IZR (amplitude t * 2 ^ e)).
  - split; apply Rmult_le_compat_r; lra.
  - rewrite mult_IZR. change (2 ^ e)%Z with (radix2 ^ e)%Z. rewrite IZR_Zpower by exact E. ring.
Qed.

Lemma decay_between k : (0 <= k)%Z ->
  between (q l t ^ Z.to_nat k) (fun n => decay_bounds n k) /\ ((0 < k)%Z -> open (fun n => decay_bounds n k)).
Proof.
  intros K. generalize (tail_start_positive l t S). intros T.
  unfold decay_bounds, Integers.decay_bounds.
  destruct (powers k (if gaussian l then 2 * tail_start t else 1) K ltac:(destruct (gaussian l); lia))
    as [Bt Op].
  split; [|intros P; apply Op; destruct (gaussian l); nia].
  replace (q l t ^ Z.to_nat k) with (exp (- slope l * IZR (k * if gaussian l then 2 * tail_start t else 1))).
  - exact Bt.
  - unfold q, tail_ratio. cbn [denote]. rewrite exp_pow, INR_IZR_INZ, Z2Nat.id, (tail_starts l t S) by exact K. f_equal.
    unfold slope, dividend. destruct (gaussian l); rewrite ?Z.pow_2_r, !mult_IZR; unfold Rdiv; ring.
Qed.

Theorem tail_holds e : (0 <= e)%Z ->
  hold (IZR (item (weights t) 63) * (IZR (2 ^ shift t) * (1 - q l t)))
       (IZR (amplitude t) * (bpow radix2 e * density l (tail_start t))) (tail_sides e).
Proof.
  intros E n N3. assert (N : (1 <= n)%Z) by lia. unfold tail_sides, Integers.tail_sides. fold (decay_bounds n 1).
  generalize (threshold_between e (tail_start t) n E (Z.lt_le_incl _ _ (tail_start_positive l t S)) N).
  destruct (scaled (amplitude t * 2 ^ e) _) as [a0 a1]. intros A. unfold scaled, complement. cbn [fst snd].
  destruct (decay_between 1 ltac:(lia)) as [Bt Op]. specialize (Bt n N). specialize (Op ltac:(lia) n N).
  rewrite pow_1 in Bt. destruct (decay_bounds n 1) as [d0 d1]. cbn [fst snd] in *. generalize (q_range l t S). intros Q.
  assert (U : (0 < unit n)%Z) by (apply Z.pow_pos_nonneg; lia). assert (U' : 0 < IZR (unit n)) by (apply IZR_lt, U).
  assert (Two : (0 < 2 ^ shift t)%Z) by (apply Z.pow_pos_nonneg; generalize (shift_range _ _ facts); lia).
  assert (W : (0 < item (weights t) 63)%Z) by (generalize (weight_range _ _ facts 63); lia).
  assert (D0 : (d0 < unit n)%Z) by (apply lt_IZR; nra).
  split; [apply Z.mul_nonneg_nonneg; [apply Z.mul_nonneg_nonneg|]; lia|]. split; [|split; [exact A|]].
  - assert (C : IZR (Z.max 0 (unit n - d1)) <= (1 - q l t) * IZR (unit n) <= IZR (Z.max 0 (unit n - d0))).
    { split; [destruct (Z.max_spec 0 (unit n - d1)) as [[_ ->]|[_ ->]]|rewrite Z.max_r by lia]; rewrite ?minus_IZR;
      nra. }
    rewrite !mult_IZR. apply IZR_lt in W, Two.
    replace (IZR (item (weights t) 63) * (IZR (2 ^ shift t) * (1 - q l t)) * IZR (unit n)) with
      ((1 - q l t) * IZR (unit n) * IZR (2 ^ shift t) * IZR (item (weights t) 63)) by ring.
    split; repeat apply Rmult_le_compat_r; lra.
  - intros H. exfalso. rewrite (Z.max_r 0 (unit n - d0)) in H by lia.
    assert (Z.max 0 (unit n - d1) < unit n - d0)%Z by lia. nia.
Qed.

Theorem bins_hold weight e x : (0 <= weight)%Z -> (0 <= e)%Z -> (0 <= x)%Z ->
  hold (IZR weight) (IZR (amplitude t) * (bpow radix2 e * density l x)) (bin_sides weight e x).
Proof.
  intros W E X n N3. assert (N : (1 <= n)%Z) by lia. unfold bin_sides, Integers.bin_sides. generalize
    (threshold_between e x n E X N).
  destruct (scaled _ _) as [a0 a1]. intros A. assert (U : (0 < unit n)%Z) by (apply Z.pow_pos_nonneg; lia).
  split; [nia|]. split; [rewrite mult_IZR; lra|]. split; [exact A|intros _; exists (weight * 2 ^ 129)%Z; ring].
Qed.

(* So the answer for an open trial of a bin is what all bits of its uniform number would say. *)
Theorem open_trials_are_decided weight e x : (0 <= weight)%Z -> (0 <= e)%Z -> (0 <= x)%Z ->
  forall steps uniform words answer more count, (0 <= uniform)%Z -> List.Forall (fun word => 0 <= word < 2 ^ 64)%Z
      words ->
  is_below steps (bin_sides weight e x) 4 uniform 1 words = Some (answer, more, count) ->
  if answer then (IZR more + 1) * IZR weight <= right_side l t (64 * count - 1) e x
  else right_side l t (64 * count - 1) e x <= IZR more * IZR weight.
Proof.
  intros W E X steps uniform words answer more count U Ws R.
  destruct (is_below_is_right _ _ _ (bins_hold weight e x W E X) steps 4%Z uniform 1%Z words answer more count
    (Z.le_refl 1) ltac:(lia) U Ws R) as [C D].
  revert D.
  unfold decided_below, decided_above. change 2%Z with (radix_val radix2) at 1 2. rewrite IZR_Zpower by lia.
  replace (right_side l t (64 * count - 1) e x) with
    (IZR (amplitude t) * (bpow radix2 e * density l x) * bpow radix2 (64 * count - 1)).
  - destruct answer; exact (fun x => x).
  - unfold right_side. rewrite bpow_plus. ring.
Qed.
End Sides.
