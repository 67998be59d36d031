(* Flipped bits and Bernoulli samples are independent and have exactly their probabilities. *)
From Coq Require Import Reals ZArith List Bool Lia Lra.
From Dpnoise Require Import Words CoinsModel.
Import ListNotations.
Open Scope R_scope.

(* The mean over lists of words. *)
Fixpoint mean_of (count bits : nat) (g : list Z -> R) : R :=
  match count with
  | O => g []
  | S count => mean bits (fun w => mean_of count bits (fun ws => g (w :: ws)))
  end.

Lemma mean_of_ext count bits : forall g h, (forall ws, length ws = count -> g ws = h ws)
  -> mean_of count bits g = mean_of count bits h.
Proof.
  induction count as [|count IH]; intros g h H; simpl; [apply H; reflexivity|]. apply mean_ext. intros w _. apply IH.
  intros ws L. apply H. simpl. congruence.
Qed.

Lemma mean_of_scale count bits c : forall g, mean_of count bits (fun ws => c * g ws) = c * mean_of count bits g.
Proof.
  induction count as [|count IH]; intros g; [reflexivity|]. cbn [mean_of]. rewrite <- mean_scale. apply mean_ext.
  intros w _. apply IH.
Qed.

Lemma mean_of_const count bits c : mean_of count bits (fun _ => c) = c.
Proof.
  induction count as [|count IH]; [reflexivity|]. cbn [mean_of]. rewrite IH. apply mean_const.
Qed.

Lemma mean_swap j k : forall g, mean j (fun v => mean k (g v)) = mean k (fun w => mean j (fun v => g v w)).
Proof.
  induction j as [|j IH]; intros g; [reflexivity|]. cbn [mean]. rewrite (IH (fun v => g (2 * v)%Z)),
    (IH (fun v => g (2 * v + 1)%Z)).
  transitivity (mean k (fun w => / 2 * (mean j (fun v => g (2 * v)%Z w) + mean j (fun v => g (2 * v + 1)%Z w))));
    [rewrite mean_scale, mean_plus; field|apply mean_ext; intros; field].
Qed.

Lemma mean_of_mean j n bits : forall g,
  mean j (fun v => mean_of n bits (g v)) = mean_of n bits (fun ws => mean j (fun v => g v ws)).
Proof.
  induction n as [|n IH]; intros g; [reflexivity|]. cbn [mean_of]. rewrite mean_swap. apply mean_ext. intros w _.
  apply (IH (fun v ws => g v (w :: ws))).
Qed.

Lemma mean_of_swap m n bits : forall g,
  mean_of m bits (fun vs => mean_of n bits (g vs)) = mean_of n bits (fun ws => mean_of m bits (fun vs => g vs ws)).
Proof.
  induction m as [|m IH]; intros g; [reflexivity|]. cbn [mean_of].
  rewrite <- (mean_of_mean bits n bits (fun v ws => mean_of m bits (fun vs => g (v :: vs) ws))). apply mean_ext.
  intros v _. apply (IH (fun vs => g (v :: vs))).
Qed.

Definition product (factors : list R) : R := fold_right Rmult 1 factors.

Lemma each_S {A} n (f : Z -> A) : each (S n) f = f 0%Z :: each n (fun i => f (i + 1)%Z).
Proof.
  unfold each. cbn [each_from]. f_equal. generalize 0%Z as i.
  induction n as [|n IH]; intros i; [reflexivity|]. cbn [each_from]. f_equal. apply IH.
Qed.

Lemma each_ext {A} n : forall f g : Z -> A, (forall i, (0 <= i < Z.of_nat n)%Z -> f i = g i) -> each n f = each n g.
Proof.
  induction n as [|n IH]; intros f g H; [reflexivity|]. rewrite !each_S. f_equal; [apply H; lia|]. apply IH.
  intros i I. apply H. lia.
Qed.

Lemma one_and x y : one (x && y) = one x * one y.
Proof. destruct x, y; simpl; ring. Qed.

Lemma are_each n : forall f g,
  one (are Bool.eqb (each n f) (each n g)) = product (each n (fun i => one (Bool.eqb (f i) (g i)))).
Proof.
  induction n as [|n IH]; intros f g; [reflexivity|]. rewrite !each_S. cbn [are]. rewrite one_and, IH. reflexivity.
Qed.

(* The digits of lane i's number in planes of words, least significant plane first. *)
Fixpoint lane (i : Z) (random : list Z) : Z :=
  match random with [] => 0 | w :: random => Z.b2z (Z.testbit w i) + 2 * lane i random end%Z.

Lemma mean_of_bits n : forall f : Z -> bool -> R,
  mean n (fun w => product (each n (fun i => f i (Z.testbit w i))))
    = product (each n (fun i => (f i false + f i true) / 2)).
Proof.
  induction n as [|n IH]; intros f; [reflexivity|]. cbn [mean].
  assert (Half : forall b v, (forall w, v w = 2 * w + Z.b2z b)%Z ->
    mean n (fun w => product (each (S n) (fun i => f i (Z.testbit (v w) i))))
      = f 0%Z b * product (each n (fun i => (f (i + 1)%Z false + f (i + 1)%Z true) / 2))).
  { intros b v V. rewrite <- (IH (fun i => f (i + 1)%Z)), <- mean_scale. apply mean_ext. intros w _. rewrite V.
    rewrite !each_S. cbn [product fold_right]. rewrite Z.testbit_0_r. unfold product. do 2 f_equal.
    apply each_ext. intros i I. rewrite Z.add_1_r, Z.testbit_succ_r by lia. reflexivity. }
  rewrite (Half false (fun w => 2 * w)%Z), (Half true (fun w => 2 * w + 1)%Z) by (intros w; simpl; lia).
  rewrite each_S. cbn [product fold_right]. unfold product. field.
Qed.

(* With uniform planes the numbers of all lanes are uniform and independent. *)
Theorem lanes_are_independent n planes : forall g : Z -> Z -> R,
  mean_of planes n (fun random => product (each n (fun i => g i (lane i random))))
    = product (each n (fun i => mean planes (g i))).
Proof.
  induction planes as [|planes IH]; intros g; [reflexivity|]. cbn [mean_of lane].
  rewrite (mean_ext n _ (fun w => product (each n (fun i =>
    mean planes (fun u => g i (Z.b2z (Z.testbit w i) + 2 * u)%Z))))) by (intros w _;
    apply (IH (fun i u => g i (Z.b2z (Z.testbit w i) + 2 * u)%Z))).
  rewrite (mean_of_bits n (fun i b => mean planes (fun u => g i (Z.b2z b + 2 * u)%Z))). f_equal. apply each_ext.
  intros i _. cbn [mean Z.b2z]. f_equal. f_equal; apply mean_ext; intros w _; f_equal; lia.
Qed.

Definition threshold_of (p q data i : Z) : Z := if Z.testbit data i then p else q.

Lemma plane_in_lane n data p q u decided i : (0 <= i < Z.of_nat n)%Z ->
  Z.testbit (plane (Z.ones (Z.of_nat n)) data p q u decided) i
    = if (if Z.testbit data i then p else q) then negb (Z.testbit u i) || Z.testbit decided i
      else negb (Z.testbit u i) && Z.testbit decided i.
Proof.
  intros I. unfold plane. destruct p, q; rewrite ?Z.lxor_spec, ?Z.land_spec, ?Z.lxor_spec, ?Z.land_spec, ?Z.lxor_spec,
    Z.ones_spec_low by lia; destruct (Z.testbit data i), (Z.testbit u i), (Z.testbit decided i); reflexivity.
Qed.

Lemma flip_from_compares n data i : (0 <= i < Z.of_nat n)%Z -> forall random p q decided,
  let limit := (2^ (length random))%Z in let t := threshold_of p q data i in
  (0 <= t < limit)%Z ->
  Z.testbit (flip_from (Z.ones (Z.of_nat n)) data p q random decided) i
    = (lane i random <? t)%Z || (lane i random =? t)%Z && Z.testbit decided i.
Proof.
  intros I. induction random as [|u random IH]; intros p q decided limit t T.
  - simpl in limit. replace t with 0%Z by lia. reflexivity.
  - unfold limit in T. cbn [length] in T. rewrite pow_S in T. cbn [flip_from lane].
    assert (D : threshold_of (Z.div2 p) (Z.div2 q) data i = Z.div2 t) by (unfold t, threshold_of;
      destruct (Z.testbit data i); reflexivity).
    assert (O : (if Z.testbit data i then Z.odd p else Z.odd q) = Z.odd t) by (unfold t, threshold_of;
      destruct (Z.testbit data i); reflexivity).
    generalize (Z.div2_odd t). intros E. rewrite IH, D, plane_in_lane, O; [|exact I|rewrite D; destruct (Z.odd t);
      simpl Z.b2z in E; lia].
    set (h := Z.div2 t) in *. set (v := lane i random).
    destruct (Z.odd t), (Z.testbit u i), (Z.testbit decided i); cbn [Z.b2z negb orb andb] in *;
    destruct (Z.ltb_spec v h), (Z.eqb_spec v h); try lia; cbn [orb andb];
    match goal with |- _ = (?a <? ?b)%Z || _ => destruct (Z.ltb_spec a b), (Z.eqb_spec a b) end; try lia; reflexivity.
Qed.

(* A new bit is 1 if and only if the number of its lane is below its threshold. *)
Theorem flip_compares n p q random data i : (0 <= i < Z.of_nat n)%Z ->
  (0 <= p < 2^ (length random))%Z -> (0 <= q < 2^ (length random))%Z ->
  Z.testbit (flip n p q random data) i = (lane i random <? if Z.testbit data i then p else q)%Z.
Proof.
  intros I P Q. unfold flip. rewrite flip_from_compares, Z.bits_0, andb_false_r, orb_false_r; [reflexivity|exact I|].
  unfold threshold_of. destruct (Z.testbit data i); assumption.
Qed.

(* The probability of an outcome of a coin of probability p. *)
Definition chance (p : R) (outcome : bool) : R := if outcome then p else 1 - p.

Lemma mean_of_coin k T outcome : (0 <= T <= 2^ k)%Z ->
  mean k (fun u => one (Bool.eqb (u <? T)%Z outcome)) = chance (IZR T / IZR (2^ k)) outcome.
Proof.
  intros H. destruct outcome; cbn [chance]; rewrite <- mean_below by exact H.
  - apply mean_ext. intros u _. destruct (u <? T)%Z; reflexivity.
  - transitivity (mean k (fun u => 1 + -1 * one (u <? T)%Z)).
    + apply mean_ext. intros u _. destruct (u <? T)%Z; simpl; ring.
    + rewrite mean_plus, mean_scale, mean_const. ring.
Qed.

(* So new bits are independent, and each is 1 with probability p / 2^planes or q / 2^planes, by its data bit. *)
Theorem flips_are_exact n planes p q data y : (0 <= p < 2^ planes)%Z -> (0 <= q < 2^ planes)%Z ->
  mean_of planes n (fun random => one (are Bool.eqb (bits n (flip n p q random data)) (bits n y)))
    = product (each n (fun i =>
        chance (IZR (if Z.testbit data i then p else q) / IZR (2^ planes)) (Z.testbit y i))).
Proof.
  intros P Q. transitivity (mean_of planes n (fun random => product (each n (fun i =>
    one (Bool.eqb (lane i random <? if Z.testbit data i then p else q)%Z (Z.testbit y i)))))).
  - apply mean_of_ext. intros random L. unfold bits. rewrite are_each. f_equal. apply each_ext. intros i I.
    rewrite flip_compares by (rewrite ?L; assumption). reflexivity.
  - rewrite (lanes_are_independent n planes (fun i u =>
      one (Bool.eqb (u <? if Z.testbit data i then p else q)%Z (Z.testbit y i)))). f_equal. apply each_ext. intros i _.
    apply mean_of_coin. destruct (Z.testbit data i); lia.
Qed.

Definition is_outcome (result : option (list bool * list Z)) (outcome : list bool) : R :=
  match result with Some (coins, _) => one (are Bool.eqb coins outcome) | None => 0 end.

Lemma power_positive d : (0 <= d -> 0 < 2 ^ d)%Z.
Proof. intros. apply Z.pow_pos_nonneg; lia. Qed.

Lemma chance_by_word D x (f : bool -> R) : (0 <= D < 2 ^ 64)%Z ->
  mean 64 (fun w => if (w =? D)%Z then x else f (w <? D)%Z)
    = IZR D / IZR (2 ^ 64) * f true + / IZR (2 ^ 64) * x + (1 - (IZR D + 1) / IZR (2 ^ 64)) * f false.
Proof.
  intros H. transitivity (mean 64 (fun w => f true * one (w <? D)%Z + x * one (w =? D)%Z
    + f false * (1 + -1 * one (w <? D + 1)%Z))).
  - apply mean_ext. intros w _.
    destruct (Z.eqb_spec w D), (Z.ltb_spec w D), (Z.ltb_spec w (D + 1)); try lia; simpl; ring.
  - rewrite !mean_plus, !mean_scale, mean_plus, mean_scale, mean_const, !mean_below, mean_single
      by (simpl Z.of_nat; lia).
    rewrite plus_IZR. simpl Z.of_nat. field. apply Rgt_not_eq, (IZR_lt 0). reflexivity.
Qed.

(* What follows an open coin goes on with the words that are left: enough ones, for each of both outcomes. *)
Lemma further_then d need (next : bool -> list Z -> R) (law : bool -> R) : (0 <= d)%Z ->
  (forall outcome count, (need <= count)%nat -> mean_of count 64 (next outcome) = law outcome) ->
  forall m r count, (0 <= r < 2 ^ d)%Z -> (r * 2 ^ (64 * Z.of_nat m) mod 2 ^ d = 0)%Z -> (m + need <= count)%nat ->
  mean_of count 64 (fun words => match further_digits d r words with
    | Some (outcome, words) => next outcome words | None => 0 end)
    = IZR r / IZR (2 ^ d) * law true + (1 - IZR r / IZR (2 ^ d)) * law false.
Proof.
  intros D Law. generalize (power_positive d D). intros P. induction m as [|m IH]; intros r count H E C.
  all: assert (N : IZR (2 ^ d) <> 0) by (apply Rgt_not_eq, (IZR_lt 0), P).
  all: assert (Zero : r = 0%Z -> mean_of count 64 (fun words => match further_digits d r words with
    | Some (outcome, words) => next outcome words | None => 0 end)
    = IZR r / IZR (2 ^ d) * law true + (1 - IZR r / IZR (2 ^ d)) * law false).
  1, 3: intros ->; rewrite <- (Law false count) by lia; transitivity (mean_of count 64 (next false));
    [apply mean_of_ext; intros [|w ws] _; reflexivity|field; exact N].
  - apply Zero. simpl in E. rewrite Z.mul_1_r, Z.mod_small in E; lia.
  - destruct (Z.eq_dec r 0) as [Z0|Z0]; [apply Zero, Z0|]. destruct count as [|count]; [lia|].
    cbn [mean_of further_digits].
    rewrite (proj2 (Z.eqb_neq r 0) Z0). set (D' := (r * 2 ^ 64 / 2 ^ d)%Z). set (r' := (r * 2 ^ 64 mod 2 ^ d)%Z).
    assert (ED : Z.shiftr (Z.shiftl r 64) d = D') by (rewrite Z.shiftr_div_pow2, Z.shiftl_mul_pow2 by lia; reflexivity).
    assert (ER : (Z.shiftl r 64 - Z.shiftl D' d)%Z = r') by
      (rewrite !Z.shiftl_mul_pow2, Z.mul_comm by lia; unfold r', D'; rewrite Z.mod_eq by lia; ring).
    cbv zeta. rewrite ED, ER.
    assert (R' : (0 <= r' < 2 ^ d)%Z) by (apply Z.mod_pos_bound; lia).
    assert (Split : (r * 2 ^ 64 = 2 ^ d * D' + r')%Z) by (apply Z.div_mod; lia).
    assert (B : (0 <= D' < 2 ^ 64)%Z) by (split; [apply Z.div_pos; lia|apply Z.div_lt_upper_bound; lia]).
    transitivity (mean 64 (fun w => if (w =? D')%Z
      then IZR r' / IZR (2 ^ d) * law true + (1 - IZR r' / IZR (2 ^ d)) * law false else law (w <? D')%Z)).
    + apply mean_ext. intros w _. destruct (w =? D')%Z; [|apply Law; lia]. apply IH; [exact R'| |lia].
      unfold r'. rewrite Z.mul_mod_idemp_l by lia. rewrite <- E. f_equal. rewrite <- Z.mul_assoc, <- Z.pow_add_r by lia.
      f_equal. f_equal. lia.
    + rewrite chance_by_word by exact B. apply (f_equal IZR) in Split. rewrite plus_IZR, !mult_IZR in Split.
      assert (IZR r = (IZR (2 ^ d) * IZR D' + IZR r') / IZR (2 ^ 64)) as -> by (rewrite <- Split; field;
        apply Rgt_not_eq, (IZR_lt 0); reflexivity).
      field. split; [apply Rgt_not_eq, (IZR_lt 0); reflexivity|exact N].
Qed.

(* The further digits of an open coin are exact where words suffice: as many as its probability has digits. *)
Theorem further_digits_are_exact d r m outcome : (0 <= d <= 64 * Z.of_nat m)%Z -> (0 <= r < 2 ^ d)%Z ->
  mean_of m 64 (fun words => match further_digits d r words with
    | Some (coin, _) => one (Bool.eqb coin outcome) | None => 0 end) = chance (IZR r / IZR (2 ^ d)) outcome.
Proof.
  intros D H. rewrite (further_then d 0 (fun coin _ => one (Bool.eqb coin outcome))
    (fun coin => one (Bool.eqb coin outcome))) with (m := m); try lia; try assumption.
  - destruct outcome; simpl; ring.
  - intros. apply mean_of_const.
  - replace (64 * Z.of_nat m)%Z with ((64 * Z.of_nat m - d) + d)%Z by lia. rewrite Z.pow_add_r, Z.mul_assoc by lia.
    apply Z.mod_mul. generalize (power_positive d). lia.
Qed.

(* The law of a coin that is, or is not, below T and T + 1. *)
Definition resolved (p : R) (coin at_most outcome : bool) : R :=
  if xorb coin at_most then (if coin then one outcome else chance p outcome) else one (Bool.eqb coin outcome).

Lemma resolve_law d r m : (0 <= d)%Z -> (0 <= r < 2 ^ d)%Z -> (r * 2 ^ (64 * Z.of_nat m) mod 2 ^ d = 0)%Z ->
  forall n coin at_most y count, (n * m <= count)%nat ->
  mean_of count 64 (fun words => is_outcome (resolve d r (each n (fun i => (coin i, at_most i))) words) (each n y))
    = product (each n (fun i => resolved (IZR r / IZR (2 ^ d)) (coin i) (at_most i) (y i))).
Proof.
  intros D H E. induction n as [|n IH]; intros coin at_most y count C; [apply (mean_of_const count 64 1)|].
  rewrite !each_S. cbn [product fold_right resolve].
  set (tail := fold_right Rmult 1 _). set (c := coin 0%Z). set (a := at_most 0%Z). set (coins := each n _).
  set (next := fun further words => one (Bool.eqb (c || further) (y 0%Z))
    * is_outcome (resolve d r coins words) (each n (fun i => y (i + 1)%Z))).
  assert (Next : forall further count, (n * m <= count)%nat ->
    mean_of count 64 (next further) = one (Bool.eqb (c || further) (y 0%Z)) * tail).
  { intros further k K. unfold next. rewrite mean_of_scale. f_equal. apply IH. exact K. }
  transitivity (mean_of count 64 (fun words =>
    match (if xorb c a then further_digits d r words else Some (false, words)) with
    | Some (further, words) => next further words | None => 0 end)).
  - apply mean_of_ext. intros words _. destruct (if xorb c a then _ else _) as [[further left]|]; [|reflexivity].
    unfold next, is_outcome. destruct (resolve d r coins left) as [[rest' left']|]; [apply one_and|ring].
  - unfold resolved. destruct (xorb c a).
    + rewrite (further_then d (n * m) next _ D Next m) by (assumption || lia). destruct c, (y 0%Z); simpl; ring.
    + rewrite Next by lia. rewrite orb_false_r. reflexivity.
Qed.

Lemma digits_facts n d : match digits n d with
  | Some k => (k <= 64)%nat /\ (n * 2^ k mod 2 ^ d = 0)%Z
  | None => forall k, (k <= 64)%nat -> (n * 2^ k mod 2 ^ d <> 0)%Z end.
Proof.
  unfold digits. destruct (find _ _) as [k|] eqn:F.
  - apply find_some in F. rewrite in_seq, Z.eqb_eq in F. split; [lia|apply F].
  - intros k K. generalize (find_none _ _ F k). rewrite in_seq, Z.eqb_neq. intros X. apply X. lia.
Qed.

(* Coins of p = n / 2^d, a double from 0 to 1, are independent and each is true with probability p, exactly, where
   there are as many further words as p may have digits: no limit is taken. *)
Theorem coins_are_exact lanes n d m count y : (0 <= n <= 2 ^ d)%Z -> (n < 2 ^ 53)%Z ->
  (0 <= d <= 64 + 64 * Z.of_nat m)%Z -> (lanes * m <= count)%nat ->
  mean_of (planes n d) lanes (fun random => mean_of count 64 (fun words =>
    is_outcome (tile lanes n d random words) (bits lanes y)))
    = product (each lanes (fun i => chance (IZR n / IZR (2 ^ d)) (Z.testbit y i))).
Proof.
  intros N Short D C. generalize (power_positive d ltac:(lia)) (digits_facts n d). intros P.
  assert (P' : IZR (2 ^ d) <> 0) by (apply Rgt_not_eq, (IZR_lt 0), P).
  unfold tile, threshold, planes. destruct (digits n d) as [k|] eqn:Found; intros F.
  - (* All digits are in the planes. *)
    destruct F as [K F]. apply Z.mod_divide in F; [|lia]. destruct F as [t F]. rewrite F, Z.div_mul by lia.
    generalize (pow_positive k). intros Pk.
    assert (Prob : IZR n / IZR (2 ^ d) = IZR t / IZR (2^ k)).
    { apply (f_equal IZR) in F. rewrite !mult_IZR in F. apply Rmult_eq_reg_r with (IZR (2^ k) * IZR (2 ^ d)).
      - field_simplify; [lra| |]; try split; try assumption; apply Rgt_not_eq, (IZR_lt 0), Pk.
      - apply Rmult_integral_contrapositive_currified; [apply Rgt_not_eq, (IZR_lt 0), Pk|exact P']. }
    assert (T : (0 <= t <= 2^ k)%Z) by nia.
    rewrite Prob. destruct k as [|k].
    + cbn [mean_of is_outcome]. rewrite mean_of_const. unfold bits. rewrite are_each. f_equal.
      apply each_ext. intros i _. simpl in T.
      assert (t = 0 \/ t = 1)%Z as [-> | ->] by lia; destruct (Z.testbit y i); simpl; field.
    + transitivity (mean_of (S k) lanes (fun random =>
        one (are Bool.eqb (bits lanes (flip lanes t t random 0)) (bits lanes y))));
        [apply mean_of_ext; intros; cbn [is_outcome]; apply mean_of_const|].
      assert (t < 2^ (S k))%Z.
      { destruct (Z.eq_dec t (2^ (S k))) as [->|]; [|lia]. exfalso. assert (n = 2 ^ d)%Z as -> by nia.
        revert Found. unfold digits. cbn [seq find]. rewrite Z.mul_1_r, Z.mod_same by lia. discriminate. }
      rewrite flips_are_exact by lia. f_equal. apply each_ext. intros i _. rewrite Z.bits_0. reflexivity.
  - (* Coins may be open. *)
    assert (D64 : (64 < d)%Z).
    { destruct (Z.lt_ge_cases 64 d) as [|G]; [assumption|exfalso]. apply (F 64%nat); [lia|].
      replace (2^ 64)%Z with (2 ^ (64 - d) * 2 ^ d)%Z by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
      rewrite Z.mul_assoc. apply Z.mod_mul. lia. }
    set (t := (n * 2^ 64 / 2 ^ d)%Z). set (r := rest n d).
    assert (Split : (n * 2 ^ 64 = 2 ^ d * t + r)%Z) by (apply Z.div_mod; lia).
    assert (Hr : (0 <= r < 2 ^ d)%Z) by (apply Z.mod_pos_bound; lia).
    assert (T : (0 <= t < 2 ^ 53)%Z).
    { split; [apply Z.div_pos; lia|]. apply Z.div_lt_upper_bound; [lia|].
      assert (2 ^ 64 <= 2 ^ d)%Z by (apply Z.pow_le_mono_r; lia). change (2^ 64)%Z with (2 ^ 64)%Z. nia. }
    transitivity (mean_of 64 lanes (fun random => product (each lanes (fun i =>
      resolved (IZR r / IZR (2 ^ d)) (lane i random <? t)%Z (lane i random <? t + 1)%Z (Z.testbit y i))))).
    + apply mean_of_ext. intros random L. unfold bits. rewrite (resolve_law d r m) by (try assumption; try lia;
        unfold r, rest; rewrite Z.mul_mod_idemp_l by lia;
        replace (n * 2 ^ 64 * 2 ^ (64 * Z.of_nat m))%Z with (n * 2 ^ (64 + 64 * Z.of_nat m - d) * 2 ^ d)%Z by
          (rewrite <- !Z.mul_assoc, <- !Z.pow_add_r by lia; do 2 f_equal; lia); apply Z.mod_mul; lia).
      f_equal. apply each_ext. intros i I. rewrite !flip_compares by (rewrite ?L; simpl Z.of_nat; lia).
      rewrite Z.bits_0. reflexivity.
    + rewrite (lanes_are_independent lanes 64 (fun i u =>
        resolved (IZR r / IZR (2 ^ d)) (u <? t)%Z (u <? t + 1)%Z (Z.testbit y i))).
      f_equal. apply each_ext. intros i _.
      transitivity (mean 64 (fun w => if (w =? t)%Z then chance (IZR r / IZR (2 ^ d)) (Z.testbit y i)
        else one (Bool.eqb (w <? t)%Z (Z.testbit y i)))).
      * apply mean_ext. intros w _. unfold resolved.
        destruct (Z.eqb_spec w t), (Z.ltb_spec w t), (Z.ltb_spec w (t + 1)); try lia; reflexivity.
      * rewrite (chance_by_word t _ (fun b => one (Bool.eqb b (Z.testbit y i)))) by lia.
        apply (f_equal IZR) in Split. rewrite plus_IZR, !mult_IZR in Split.
        assert (IZR n = (IZR (2 ^ d) * IZR t + IZR r) / IZR (2 ^ 64)) as -> by (rewrite <- Split; field;
          apply Rgt_not_eq, (IZR_lt 0); reflexivity).
        assert (IZR (2 ^ 64) <> 0) by (apply Rgt_not_eq, (IZR_lt 0); reflexivity).
        destruct (Z.testbit y i); cbn [chance Bool.eqb one]; field; split; assumption.
Qed.
