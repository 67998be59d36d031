(* The bounds of what entries lack hold, at every precision; so coins of the rest are decided right. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Dpnoise Require Import Decide Fixed Model Words Sound Values Integers Refine Programs Tail Rest Alias Entries
  Digits Resolve.
Import ListNotations.
Open Scope R_scope.

(* A number that is not negative, and its bounds at a precision. *)
Section Bounds.
Variable n : Z.
Hypothesis N : (1 <= n)%Z.
Definition within (x : R) (bounds : Z * Z) : Prop :=
  (0 <= fst bounds)%Z /\ IZR (fst bounds) <= x * IZR (unit n) <= IZR (snd bounds).

Lemma unit_is_positive : (1 <= unit n)%Z /\ 1 <= IZR (unit n).
Proof.
  assert (U : (0 < unit n)%Z) by (apply Z.pow_pos_nonneg; lia). split; [lia|]. apply IZR_le. lia.
Qed.

Lemma whole_within k : (0 <= k)%Z -> within (IZR k) (whole n k).
Proof. intros K. destruct unit_is_positive. unfold within, whole. cbn [fst snd]. rewrite mult_IZR. split; [nia|lra].
  Qed.

Lemma sum_within x y a b : within x a -> within y b -> within (x + y) (sum_of a b).
Proof. unfold within, sum_of. cbn [fst snd]. intros [A X] [B Y]. rewrite !plus_IZR. split; [lia|lra]. Qed.

Lemma max_0 z x : 0 <= x -> IZR z <= x -> IZR (Z.max 0 z) <= x.
Proof. intros X Z0. destruct (Z.max_spec 0 z) as [[_ ->]|[_ ->]]; assumption. Qed.

Lemma difference_within x y a b : 0 <= x - y -> within x a -> within y b -> within (x - y) (difference a b).
Proof.
  unfold within, difference. cbn [fst snd]. intros D [A X] [B Y]. destruct unit_is_positive as [_ U]. split; [lia|].
    split.
  - apply max_0; [nra|]. rewrite minus_IZR. lra.
  - apply Rle_trans with (IZR (snd a - fst b)); [rewrite minus_IZR; lra|apply IZR_le; lia].
Qed.

Lemma scaled_within x a k : (0 <= k)%Z -> within x a -> within (x * IZR k) (scaled k a).
Proof.
  unfold within, scaled. cbn [fst snd]. intros K [A X]. rewrite !mult_IZR. apply IZR_le in K. split; [|nra].
  apply le_IZR in K. nia.
Qed.

Lemma product_within x y a b : 0 <= x -> 0 <= y -> within x a -> within y b -> within (x * y) (product n a b).
Proof.
  unfold within, product. cbn [fst snd]. intros X0 Y0 [A X] [B Y]. destruct unit_is_positive as [U U'].
  split; [apply times_positive; assumption|]. rewrite plus_IZR, !times_is by lia.
  generalize (down (fst a * fst b) (unit n) ltac:(lia)) (down (snd a * snd b) (unit n) ltac:(lia)). rewrite !mult_IZR.
  intros D D'. apply IZR_le in A, B.
  assert (L : IZR (fst a) * IZR (fst b) / IZR (unit n) <= x * y * IZR (unit n)).
  { apply Rle_div_l; [lra|]. replace (x * y * IZR (unit n) * IZR (unit n)) with (x * IZR (unit n) * (y * IZR (unit n)))
    by ring.
    apply Rmult_le_compat; lra. }
  assert (H : x * y * IZR (unit n) <= IZR (snd a) * IZR (snd b) / IZR (unit n)).
  { assert (P : 0 < IZR (unit n)) by lra. apply (proj1 (Rle_div_r _ _ _ P)).
    replace (x * y * IZR (unit n) * IZR (unit n)) with (x * IZR (unit n) * (y * IZR (unit n))) by ring.
    apply Rmult_le_compat; try lra; apply Rmult_le_pos; lra. }
  lra.
Qed.

Lemma inverse_within x a : (0 < fst a)%Z -> within x a -> within (/ x) (inverse n a).
Proof.
  unfold within, inverse. cbn [fst snd]. intros P [A X]. destruct unit_is_positive as [U U'].
  assert (P' : 0 < IZR (fst a)) by (apply IZR_lt, P). assert (S' : 0 < IZR (snd a)) by lra.
  assert (S : (0 < snd a)%Z) by (apply lt_IZR, S'). assert (X0 : 0 < x) by nra.
  split; [apply Z.div_pos; nia|]. rewrite plus_IZR.
  generalize (down (unit n * unit n) (fst a) P) (down (unit n * unit n) (snd a) S). rewrite !mult_IZR. intros D D'.
  assert (E : / x * IZR (unit n) = IZR (unit n) * IZR (unit n) / (x * IZR (unit n))) by (field; lra).
  assert (Q : 0 < IZR (unit n) * IZR (unit n)) by nra. rewrite E.
  assert (IZR (unit n) * IZR (unit n) / IZR (snd a) <= IZR (unit n) * IZR (unit n) / (x * IZR (unit n))).
  { apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; lra. }
  assert (IZR (unit n) * IZR (unit n) / (x * IZR (unit n)) <= IZR (unit n) * IZR (unit n) / IZR (fst a)).
  { apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; lra. }
  lra.
Qed.

Lemma complement_within x a : x <= 1 -> within x a -> within (1 - x) (complement n a).
Proof.
  intros X W. replace (complement n a) with (difference (whole n 1) a)
    by (unfold complement, difference, whole; cbn [fst snd]; rewrite Z.mul_1_l; reflexivity).
  apply difference_within; [lra|apply (whole_within 1); lia|exact W].
Qed.

Lemma falling_within q b : 0 <= q -> within q b -> forall count i v a, 0 <= v -> within v a -> (i < count)%nat ->
  within (v * q ^ i) (nth i (falling n count a b) (0, 0)%Z).
Proof.
  intros Q B. induction count as [|count IH]; intros i v a V A I; [lia|]. cbn [falling]. destruct i as [|i]; cbn [nth].
  - simpl. rewrite Rmult_1_r. exact A.
  - simpl. rewrite <- Rmult_assoc. apply IH; [apply Rmult_le_pos; assumption|apply product_within; assumption|lia].
Qed.

Lemma bending_within q b : 0 <= q -> within (q ^ 2) b -> forall count i v r, within (q ^ (i * i)) v ->
  within (q ^ (2 * i + 1)) r -> Forall2 within (map (fun i => q ^ (i * i)) (seq i count)) (bending n count v r b).
Proof.
  intros Q B. induction count as [|count IH]; intros i v r V R; constructor; [exact V|]. apply IH.
  - replace (S i * S i)%nat with (i * i + (2 * i + 1))%nat by lia. rewrite pow_add.
    apply product_within; trivial; apply pow_le, Q.
  - replace (2 * S i + 1)%nat with (2 * i + 1 + 2)%nat by lia. rewrite pow_add.
    apply product_within; trivial; apply pow_le, Q.
Qed.

Lemma sums_within x z : within x z -> forall xs zs, Forall2 within xs zs ->
  within (fold_right Rplus x xs) (fold_right sum_of z zs).
Proof. induction 2; cbn [fold_right]; [assumption|apply sum_within; assumption]. Qed.

Lemma all_within {A} (f : A -> R) g (l : list A) : (forall a, In a l -> within (f a) (g a)) ->
  Forall2 within (map f l) (map g l).
Proof.
  induction l; intros H; constructor; [apply H; left; reflexivity|apply IHl; intros; apply H; right; assumption].
Qed.

Lemma nth_of_indices {A : Type} (f : Z -> A) count e other : (0 <= e < Z.of_nat count)%Z ->
  nth (Z.to_nat e) (map f (indices count)) other = f e.
Proof.
  intros E. rewrite (nth_indep _ other (f 0%Z)) by (unfold indices; rewrite !map_length, seq_length; lia).
  unfold indices. rewrite map_map, (map_nth (fun i => f (Z.of_nat i)) _ 0%nat), seq_nth by lia. f_equal. lia.
Qed.
End Bounds.

Section Lacking.
Variables (l : law) (at_precision : Z -> constants) (d : digit) (last : bool).
Hypothesis Numerator : (1 <= numerator l)%Z.
Hypothesis Denominator : (1 <= denominator l)%Z.
Hypothesis Constants : forall n, (1 <= n)%Z -> sound_constants (at_precision n) /\ limbs (at_precision n) = n.
Hypothesis Step : (1 <= step d)%Z.
Hypothesis S : sound_digit l d last = true.
Hypothesis Rest : sound_rest l d last = true.
Notation T := (at_least l d last).

Lemma density_within n x : (1 <= n)%Z -> (0 <= x)%Z -> within n (density l x) (density_bounds l at_precision n x).
Proof.
  intros N X. split; [|apply (density_between l at_precision Numerator Denominator Constants); assumption].
  unfold density_bounds, power. destruct (Constants n N) as [_ L].
  destruct (rate_of _ _) as [rate error], (exp2_neg _ _) as [k v].
  assert (0 < unit (limbs (at_precision n)))%Z by (apply Z.pow_pos_nonneg; lia).
  destruct (_ || _); cbn [fst]; lia.
Qed.

(* The probability of an entry, or for 63 of all others. *)
Definition probability_of (e : Z) : R := if (e <? 63)%Z then T e - T (e + 1) else T 63.

Lemma power_of_q e : gaussian l = false -> (0 <= e)%Z -> density l (e * step d) = density l (step d) ^ Z.to_nat e.
Proof.
  intros G E. rewrite <- (Z2Nat.id e) at 1 by exact E. induction (Z.to_nat e) as [|i IH].
  - simpl. apply density_0.
  - rewrite Nat2Z.inj_succ, Z.mul_succ_l, density_plus, IH by exact G. simpl. ring.
Qed.

Lemma probability_is_at_most_1 e : gaussian l = false -> (0 <= e <= 63)%Z -> 0 <= probability_of e <= 1.
Proof.
  intros G E. generalize (density_range l Numerator Denominator (step d) ltac:(lia)). set (q := density l (step d)).
    intros Q.
  assert (Q1 : q < 1) by (apply density_below; trivial; lia).
  assert (P62 : density l (62 * step d) < 1) by (apply density_below; trivial; lia).
  assert (P63 : density l (63 * step d) = density l (62 * step d) * q)
    by (unfold q; rewrite <- density_plus by exact G; f_equal; ring).
  assert (F62 : 0 < density l (62 * step d)) by apply exp_pos.
  (* q^e, of which none is above q but the first. *)
  assert (F : forall e, (1 <= e <= 63)%Z -> density l (63 * step d) <= density l (e * step d) <= q).
  { intros i I. rewrite !power_of_q by (exact G || lia). fold q. replace (Z.to_nat i) with (Datatypes.S (Z.to_nat (i -
    1))) by lia.
    replace (Z.to_nat 63) with (Datatypes.S (Z.to_nat (i - 1)) + Z.to_nat (63 - i))%nat by lia. rewrite pow_add. simpl.
    assert (P : forall k, 0 < q ^ k <= 1) by (intros k; split; [apply pow_lt; lra|rewrite <- (pow1 k); apply pow_incr;
      lra]).
    generalize (P (Z.to_nat (i - 1))) (P (Z.to_nat (63 - i))). set (a := q ^ _). set (b := q ^ _). intros A B. split;
      [|nra].
    rewrite <- (Rmult_1_r (q * a)) at 2. apply Rmult_le_compat_l; nra. }
  assert (Range : forall e, (0 <= e <= 63)%Z -> 0 <= T e <= 1).
  { intros i I. unfold at_least. rewrite G. fold q. destruct (Z.eqb_spec i 0); [lra|]. generalize (F i ltac:(lia)).
    intros Fi.
    set (c := density l (62 * step d)) in *. set (f := density l (i * step d)) in *. rewrite P63 in *.
    assert (Fraction : forall k x y, 0 <= k -> 0 <= x -> 0 < y -> k * x <= y -> 0 <= k * x / y <= 1).
    { intros k x y K X Y Le. split; [apply Rdiv_le_0_compat; [apply Rmult_le_pos; assumption|exact Y]|].
      apply Rle_div_l; lra. }
    assert (Twice : forall x y, 2 * x <= y * (1 + q) -> 2 / (1 + q) * x <= y).
    { intros x y Le. replace (2 / (1 + q) * x) with (2 * x / (1 + q)) by (field; lra). apply Rle_div_l; lra. }
    assert (K : 0 <= 2 / (1 + q)) by (apply Rlt_le, Rdiv_lt_0_compat; lra). assert (0 <= c * q) by nra.
    assert (c * q < 1) by nra. assert (0 <= (1 - q) * (1 - c)) by (apply Rmult_le_pos; lra).
    destruct (signed d), last; rewrite ?P63; fold c; apply Fraction; try apply Twice; lra. }
  unfold probability_of. destruct (Z.ltb_spec e 63) as [Lt|Ge]; [|apply Range; lia].
  generalize (Range e E) (Range (e + 1)%Z ltac:(lia)). intros A B. split; [|lra].
  destruct (sound_facts_of_digit l d last Numerator Denominator Step S Rest) as [P [_ [W _]]]. rewrite
    of_an_exponential by (trivial; lia).
  cbv zeta. fold q. assert (C62 : density l (63 * step d) < 1) by (apply density_below; trivial; lia).
  assert (0 < density l (e * step d)) by apply exp_pos.
  destruct (signed d && (e =? 0))%Z; [apply Rdiv_le_0_compat; lra|].
  apply Rdiv_le_0_compat; [apply Rmult_le_pos; [apply Rmult_le_pos|]; destruct (signed d); lra|].
  apply Rmult_lt_0_compat; destruct (signed d), last; lra.
Qed.

Lemma exponential_within n e : gaussian l = false -> (1 <= n)%Z -> (0 <= e <= 63)%Z ->
  within n (probability_of e) (nth (Z.to_nat e) (exponential_bounds l at_precision d last n) (0, 0)%Z).
Proof.
  intros G N E. unfold exponential_bounds. rewrite nth_of_indices by lia. cbv zeta.
  generalize (density_within n (step d) N ltac:(lia)) (density_range l Numerator Denominator (step d) ltac:(lia)).
  set (q := density l (step d)). set (qb := density_bounds l at_precision n (step d)). intros Qb Q.
  set (places := ((if signed d then 62 else 63) * step d)%Z). assert (Pl : (0 < places)%Z) by (unfold places; destruct
    (signed d); lia).
  generalize (complement_within n N _ _ ltac:(apply (density_range l Numerator Denominator places); lia)
    (density_within n places N ltac:(lia))). set (all := complement n _). intros All.
  generalize (density_below l Numerator Denominator places Pl). intros Cl.
  generalize (unit_is_positive n N). intros [U U'].
  destruct (negb last && (fst all <=? 0)%Z) eqn:Unknown.
  { generalize (probability_is_at_most_1 e G E). intros P. split; cbn [fst snd]; [lia|]. nra. }
  set (scale := if signed d then inverse n (sum_of (whole n 1) qb) else whole n 1).
  assert (Sc : within n (if signed d then / (1 + q) else 1) scale).
  { unfold scale. destruct (signed d); [|apply (whole_within n N 1); lia]. apply inverse_within; trivial.
    - unfold sum_of, whole. cbn [fst]. destruct Qb. lia.
    - apply sum_within; [apply (whole_within n N 1); lia|exact Qb]. }
  set (first := if last then _ else _).
  assert (Fi : within n ((if signed d then / (1 + q) else 1) * (if signed d then 2 else 1) * (if last then 1 else / (1
    - density l places))) first).
  { unfold first. assert (Two : within n ((if signed d then / (1 + q) else 1) * (if signed d then 2 else 1))
      (scaled (if signed d then 2 else 1) scale)) by (destruct (signed d); apply scaled_within; trivial; lia).
    destruct last; [rewrite Rmult_1_r; exact Two|]. cbn [negb andb] in Unknown. apply Z.leb_gt in Unknown.
    replace (/ (1 - density l places)) with (/ ((1 - density l places) * 64) * 64) by (field; lra). rewrite <-
      Rmult_assoc.
    apply (scaled_within n _ _ 64); [lia|]. apply product_within; trivial.
    - destruct (signed d); [apply Rmult_le_pos; [apply Rlt_le, Rinv_0_lt_compat|]; lra|lra].
    - apply Rlt_le, Rinv_0_lt_compat. lra.
    - apply inverse_within; trivial; [unfold scaled; cbn [fst]; lia|]. apply (scaled_within n _ _ 64); [lia|exact All].
      }
  assert (From : forall i, (0 <= i <= 63)%Z -> within n ((if signed d then / (1 + q) else 1) * (if signed d then 2 else
    1)
      * (if last then 1 else / (1 - density l places)) * density l (i * step d)) (nth (Z.to_nat i) (falling n 64 first
        qb) (0, 0)%Z)).
  { intros i I. rewrite power_of_q by (exact G || lia). apply (falling_within n N q qb ltac:(lra) Qb 64 _ _ first);
    [|exact Fi|lia].
    apply Rmult_le_pos; [destruct (signed d); [apply Rmult_le_pos; [apply Rlt_le, Rinv_0_lt_compat|]; lra|lra]|].
    destruct last; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]. }
  generalize (of_an_exponential l d last Numerator Denominator Step S Rest e G ltac:(lia)). cbv zeta. fold places. fold
    q. intros Is.
  destruct (signed d && (e =? 0)%Z) eqn:Zero.
  - apply andb_true_iff in Zero. destruct Zero as [Sg Z0]. apply Z.eqb_eq in Z0. unfold probability_of.
    rewrite (proj2 (Z.ltb_lt e 63)), Is by lia. apply product_within; trivial; [lra|apply Rlt_le, Rinv_0_lt_compat;
      lra| |].
    + apply complement_within; [exact N|lra|exact Qb].
    + rewrite Sg in Sc. exact Sc.
  - destruct (Z.ltb_spec e 63) as [Lt|Ge].
    + generalize (probability_is_at_most_1 e G E). unfold probability_of. rewrite (proj2 (Z.ltb_lt e 63)) by lia.
      intros P.
      replace (T e - T (e + 1)) with ((if signed d then / (1 + q) else 1) * (if signed d then 2 else 1)
        * (if last then 1 else / (1 - density l places)) * density l (e * step d)
        - (if signed d then / (1 + q) else 1) * (if signed d then 2 else 1)
        * (if last then 1 else / (1 - density l places)) * density l ((e + 1) * step d)) in *.
      * apply (difference_within n N); [apply P|apply From; lia|apply From; lia].
      * rewrite Is, Z.mul_add_distr_r, Z.mul_1_l, density_plus by exact G. fold q. destruct (signed d), last; field;
        lra.
    + unfold probability_of. rewrite (proj2 (Z.ltb_ge e 63)) by lia. replace e with 63%Z in * by lia.
      destruct (sound_facts_of_digit l d last Numerator Denominator Step S Rest) as [_ [_ [_ [_ [_ [_ Closed]]]]]].
      destruct last eqn:L.
      * replace (at_least l d true 63) with ((if signed d then / (1 + q) else 1) * (if signed d then 2 else 1) * 1 *
        density l (63 * step d));
          [apply (From 63%Z); lia|]. unfold at_least. rewrite G. change (63 =? 0)%Z with false. cbv iota. fold q.
        destruct (signed d); field; lra.
      * rewrite Closed by reflexivity. split; cbn [fst snd]; [lia|lra].
Qed.

Section Gaussian.
Hypothesis G : gaussian l = true.
Let q : R := density l 1.

(* From i on the densities of the places that follow, and all that is behind them. *)
Lemma sum_from count : forall i, fold_right Rplus (Series (after l (i + count)))
  (map (fun i => q ^ (i * i)) (seq (Datatypes.S i) count)) = Series (after l i).
Proof.
  induction count as [|count IH]; intros i; [rewrite Nat.add_0_r; reflexivity|]. cbn [seq map fold_right].
  replace (i + Datatypes.S count)%nat with (Datatypes.S i + count)%nat by lia. rewrite IH.
  rewrite (sum_follows l Numerator Denominator i G). f_equal. unfold q. rewrite <- (power_of_square l G). f_equal. lia.
Qed.

Lemma probabilities_add_up count : forall i, (i + count = 63)%nat ->
  fold_right Rplus 0 (map (fun e => probability_of e * whole_sum l) (map Z.of_nat (seq i (Datatypes.S count))))
  = T (Z.of_nat i) * whole_sum l.
Proof.
  induction count as [|count IH]; intros i E.
  - replace i with 63%nat by lia. cbn [seq map fold_right]. unfold probability_of. change (Z.of_nat 63) with 63%Z.
    change (63 <? 63)%Z with false. cbv iota. ring.
  - change (seq i (Datatypes.S (Datatypes.S count))) with (i :: seq (Datatypes.S i) (Datatypes.S count)).
    cbn [map fold_right]. cbn [map fold_right] in IH. rewrite IH by lia. unfold probability_of.
    rewrite (proj2 (Z.ltb_lt (Z.of_nat i) 63)) by lia.
    replace (Z.of_nat i + 1)%Z with (Z.of_nat (Datatypes.S i)) by lia. ring.
Qed.

Lemma gaussian_within n e : (1 <= n)%Z -> (0 <= e <= 63)%Z ->
  within n (probability_of e) (nth (Z.to_nat e) (gaussian_bounds l at_precision n) (0, 0)%Z).
Proof.
  intros N E. unfold gaussian_bounds. generalize (density_within n 1 N ltac:(lia)). fold q.
  set (qb := density_bounds l at_precision n 1). intros Qb.
  generalize (density_range l Numerator Denominator 1 ltac:(lia)). fold q. intros Q.
  generalize (Z.sqrt_spec (n - 1) ltac:(lia)) (Z.sqrt_nonneg (n - 1)). cbv zeta. intros Root Root0.
  set (k := Z.to_nat (Z.sqrt (n - 1) + 1)).
  replace (Z.to_nat (63 * (Z.sqrt (n - 1) + 1))) with (63 + (63 * k - 63))%nat by lia.
  assert (Masses := bending_within n N q (product n qb qb) ltac:(lra) ltac:(replace (q ^ 2) with (q * q) by ring;
    apply product_within; trivial; lra) (63 + (63 * k - 63)) 0 _ qb (whole_within n N 1 ltac:(lia))
    ltac:(simpl; rewrite Rmult_1_r; exact Qb)).
  set (masses := bending _ _ _ _ _) in *. rewrite seq_app, map_app in Masses.
  apply Forall2_app_inv_l in Masses. destruct Masses as [first [more [First [More ->]]]].
  assert (L := length_of_both _ _ _ First). rewrite map_length, seq_length in L.
  rewrite skipn_app, skipn_all2, <- L by lia. cbn [Nat.sub skipn app].
  set (beyond := fold_right sum_of (0, 2)%Z more).
  assert (Beyond : within n (Series (after l 62)) beyond).
  { rewrite <- (sum_from (63 * k - 63) 62). apply sums_within; [|exact More].
    replace (62 + (63 * k - 63))%nat with (63 * k - 1)%nat by lia.
    split; [cbn; lia|]. cbn [fst snd]. destruct (unit_is_positive n N) as [_ U].
    generalize (sum_positive l Numerator Denominator (63 * k - 1) G)
      (rest_is_tiny l d last Numerator Denominator S Rest G n k N ltac:(lia) ltac:(lia)). intros Low High.
    split; [apply Rmult_le_pos; lra|]. apply Rle_div_r; lra. }
  set (both := fun e => if (e =? 0)%Z then _ else _).
  generalize (whole_sum_positive l Numerator Denominator G). intros W.
  assert (Both : forall e, (0 <= e <= 63)%Z -> within n (probability_of e * whole_sum l) (both e)).
  { intros i I. unfold both, probability_of. destruct (Z.ltb_spec i 63) as [Lt|Ge].
    - rewrite of_a_gaussian by (trivial; lia). destruct (Z.eqb_spec i 0) as [->|Ni].
      + rewrite density_0. replace (1 * 1 / whole_sum l * whole_sum l) with 1 by (field; lra).
        apply (whole_within n N 1). lia.
      + replace (2 * density l i / whole_sum l * whole_sum l) with (density l i * 2) by (field; lra).
        apply (scaled_within n _ _ 2); [lia|]. rewrite app_nth1 by lia.
        generalize (nth_of_both _ _ _ 0 (0, 0)%Z First (Z.to_nat i) ltac:(rewrite map_length, seq_length; lia)).
        rewrite (nth_indep _ 0 (q ^ (0 * 0))) by (rewrite map_length, seq_length; lia).
        rewrite (map_nth (fun i => q ^ (i * i))), seq_nth, <- (power_of_square l G) by lia.
        rewrite Nat.add_0_l, Z2Nat.id by lia. trivial.
    - replace i with 63%Z by lia. unfold at_least. rewrite G. change (63 =? 0)%Z with false. cbv iota.
      replace (2 * Series (after l (Z.to_nat (63 - 1))) / whole_sum l * whole_sum l) with (Series (after l 62) * 2)
        by (change (Z.to_nat (63 - 1)) with 62%nat; field; lra).
      apply (scaled_within n _ _ 2); [lia|exact Beyond]. }
  rewrite map_map, (nth_of_indices (fun e => product n (both e) _) 64 e) by lia.
  replace (probability_of e) with (probability_of e * whole_sum l * / whole_sum l) by (field; lra).
  assert (All : forall i count, (i + count = 63)%nat -> within n (T (Z.of_nat i) * whole_sum l)
    (fold_right sum_of (0, 0)%Z (map both (map Z.of_nat (seq i (Datatypes.S count)))))).
  { intros i count C. rewrite <- (probabilities_add_up count i C). apply sums_within; [split; cbn; lia || lra|].
    apply all_within. intros j J. apply in_map_iff in J. destruct J as [m [<- J]]. apply in_seq in J. apply Both. lia. }
  destruct (unit_is_positive n N) as [U U']. apply product_within; trivial.
  - destruct (Both e E) as [P [P1 _]]. apply IZR_le in P. apply Rmult_le_reg_r with (IZR (unit n)); lra.
  - apply Rlt_le, Rinv_0_lt_compat. lra.
  - apply Both, E.
  - apply inverse_within; trivial.
    + change (0 < 1 * unit n + fst (fold_right sum_of (0, 0) (map both (map Z.of_nat (seq 1 63)))))%Z.
      destruct (All 1%nat 62%nat eq_refl) as [P _]. lia.
    + generalize (All 0%nat 63%nat eq_refl). change (T (Z.of_nat 0)) with 1. rewrite Rmult_1_l. trivial.
Qed.
End Gaussian.

Lemma lacking_holds e : (0 <= e <= 63)%Z -> exact coin (p_of l) (sides_of_number l at_precision) (Lacking d last e).
Proof.
  intros E. destruct (sound_facts_of_digit l d last Numerator Denominator Step S Rest) as [P [P63 [W _]]].
  assert (R : 0 <= lacking l d last e <= 1) by (destruct (Z.eq_dec e 63) as [->|]; [exact P63|apply P; lia]).
  exists 1, (lacking l d last e). split; [lra|]. split; [cbn [p_of]; field|]. split; [exact R|].
  apply coins_hold. intros n N. unfold lacking_bounds. rewrite nth_of_indices by lia.
  assert (A : within n (probability_of e) (nth (Z.to_nat e)
    (if gaussian l then gaussian_bounds l at_precision n else exponential_bounds l at_precision d last n) (0, 0)%Z)).
  { destruct (gaussian l) eqn:G; [apply gaussian_within|apply exponential_within]; trivial. }
  apply (scaled_within n _ _ (2 ^ 62)) in A; [|lia].
  assert (L : lacking l d last e = probability_of e * IZR (2 ^ 62) - IZR (if (e <? 63)%Z then entry_words d e else 0)).
  { unfold lacking, probability_of. destruct (e <? 63)%Z; ring. }
  rewrite L in *. apply (difference_within n N); [lra|exact A|].
  apply whole_within; [exact N|]. destruct (Z.ltb_spec e 63); [|lia]. apply (entry_words_positive l d last); trivial.
Qed.
End Lacking.

(* On uniform words, of which each loop makes `fuel` attempts, a number is x with at most the probability that exact
   coins
   have, and is short of that by at most the probability that the words or steps do not suffice. *)
Theorem numbers_follow_coins l digits at_precision : sound_digits l digits = true ->
  (forall n, (1 <= n)%Z -> sound_constants (at_precision n) /\ limbs (at_precision n) = n) ->
  forall fuel n x, let on_words := chance_on_words l (sides_of_number l at_precision) digits fuel n x in
  on_words 0 <= chance l digits fuel x <= on_words 1.
Proof.
  unfold sound_digits. rewrite !andb_true_iff, !Z.leb_le. intros [[N D] H] Constants fuel n x.
  destruct (sound_chain_of _ _ _ _ H) as [C _]. clear H.
  assert (K : forall words, keeps_to coin (exact coin (p_of l) (sides_of_number l at_precision)) (fun _ => True)
    (number_drawn l fuel digits words)).
  { intros words. unfold number_drawn. destruct (has_rest _); [|exact I]. unfold resolve.
    apply (keeps_to_then coin _ (fun _ => True)); [|intros; exact I].
    assert (E : List.Forall (fun e => 0 <= e)%Z (map Z.abs (draw digits words false true)))
      by (apply Forall_forall; intros e; rewrite in_map_iff; intros [i [<- _]]; apply Z.abs_nonneg).
    revert E. generalize (map Z.abs (draw digits words false true)). assert (P : (0 < 1)%Z) by lia. revert P C.
    generalize (two_sided l) 1%Z. clear words. intros signs next P C. revert P. induction C as [signs next|d ds S Rs C
      IH]; intros P entries E.
    - exact I.
    - assert (St : (1 <= step d)%Z) by lia. destruct entries as [|entry entries]; [exact I|]. inversion E as [|? ? E0
      E1]; subst. cbn [magnitude]. fold (is_last ds).
      apply (keeps_to_then coin _ (fun e => 0 <= e)%Z).
      + apply keeps_to_entry; trivial.
        * intros c A. destruct (tail_coins_are_exact l at_precision N D c Constants A) as [w [a X]]. exists w, a. exact
          X.
        * intros e R. apply lacking_holds; trivial.
      + intros found _. destruct (signed d && (found =? 0)%Z); [exact I|].
        apply (keeps_to_then coin _ (fun _ => True)); [|intros; exact I]. apply IH; trivial.
        destruct (signed d); lia. }
  cbv zeta. unfold chance_on_words, chance.
  split; apply mean_of_digits_le; intros words; apply (words_follow_coins coin (p_of l) _ _ _ n (K words)); intros
    found;
    destruct (found =? x)%Z; cbn [one]; lra.
Qed.
