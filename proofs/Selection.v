(* What the model of a choice draws has the law: the exponential mechanism by attempts, and permute-and-flip by looking
   at heads in random order. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Core.
From Dpnoise Require Import Words Values Sound Integers Fixed Refine Weights Uniform Candidates Choices.
Import ListNotations.
Open Scope R_scope.

(* Permute-and-flip. *)
(* What is left of a list where a mask says so. *)
Fixpoint select {A} (mask : list bool) (l : list A) : list A :=
  match mask, l with
  | b :: mask, a :: l => if b then a :: select mask l else select mask l
  | _, _ => []
  end.

(* The coins of what a first coin selects are a coin of the product. *)
Lemma two_coins ps : forall qs (ids : list nat) f, length qs = length ps -> length ids = length ps ->
  flips ps (fun heads => flips (select heads qs) (fun again => f (select again (select heads ids))))
  = flips (map (fun '(p, q) => p * q) (combine ps qs)) (fun heads => f (select heads ids)).
Proof.
  induction ps as [|p ps IH]; intros [|q qs] [|i ids] f Q I; try discriminate; [reflexivity|].
  injection Q as Q. injection I as I. cbn [combine map flips select].
  rewrite flips_plus, !flips_scale. rewrite <- (IH qs ids f Q I), <- (IH qs ids (fun l => f (i :: l)) Q I). ring.
Qed.

(* One coin decides between a constant and what does not depend on it. *)
Lemma one_coin ws : forall j c f, (j < length ws)%nat ->
  flips ws (fun heads => if nth j heads false then c else f (without j heads))
  = nth j ws 0 * c + (1 - nth j ws 0) * flips (without j ws) f.
Proof.
  induction ws as [|w ws IH]; intros j c f J; [simpl in J; lia|]. destruct j as [|j]; cbn [flips nth without].
  - rewrite flips_const. reflexivity.
  - simpl in J. rewrite (IH j c (fun l => f (true :: l))), (IH j c (fun l => f (false :: l))) by lia. ring.
Qed.

(* The candidates with heads that are left, as indices with the probabilities of their second coins; one of them is
   looked at, each alike, and taken if its coin shows heads; otherwise the others are. *)
Fixpoint look (fuel : nat) (heads : list (nat * R)) (i : nat) : R :=
  match fuel with
  | O => 0
  | S fuel =>
      total (map (fun j => / INR (length heads) * (
        let '(index, q) := nth j heads (O, 0) in
        q * (if (index =? i)%nat then 1 else 0) + (1 - q) * look fuel (without j heads) i)) (seq 0 (length heads)))
  end.

(* Uniform among listed indices. *)
Definition occurrences (i : nat) (l : list nat) : R := total (map (fun k => if (k =? i)%nat then 1 else 0) l).
Definition one_of (i : nat) (l : list nat) : R := occurrences i l / INR (length l).

Lemma length_without {A} j (l : list A) : (j < length l)%nat -> length l = S (length (without j l)).
Proof.
  revert j. induction l as [|a l IH]; intros [|j] J; simpl in *; [lia..| |]; [reflexivity|]. f_equal. apply IH. lia.
Qed.
Lemma map_without {A B} (f : A -> B) j l : map f (without j l) = without j (map f l).
Proof. revert j. induction l as [|a l IH]; intros [|j]; simpl; f_equal; auto. Qed.

Lemma select_without {A} j mask : forall l : list A, nth j mask false = false -> length l = length mask ->
  select (without j mask) (without j l) = select mask l.
Proof.
  revert j. induction mask as [|b mask IH]; intros [|j] [|a l] H L; try discriminate; try reflexivity; simpl in *.
  - rewrite H. reflexivity.
  - rewrite IH by (assumption || congruence). reflexivity.
Qed.

Lemma total_ext {A} (f g : A -> R) l : (forall a, In a l -> f a = g a) -> total (map f l) = total (map g l).
Proof. intros H. f_equal. apply map_ext_in, H. Qed.

(* All places of a mask: those with heads count what they are, the others what the rest says. *)
Lemma over_all_places x mask : forall ids i, length ids = length mask ->
  total (map (fun j => if nth j mask false then (if (nth j ids O =? i)%nat then 1 else 0) else x) (seq 0 (length ids)))
  = occurrences i (select mask ids) + (INR (length mask) - INR (length (select mask ids))) * x.
Proof.
  unfold occurrences, total. induction mask as [|b mask IH]; intros [|k ids] i L; try discriminate; [simpl; ring|].
  injection L as L. cbn [length seq map fold_right nth]. rewrite <- seq_shift, map_map.
  specialize (IH ids i L). cbn [nth]. rewrite IH, S_INR. destruct b; cbn [select length map fold_right];
    rewrite ?S_INR; ring.
Qed.

Theorem looking_is_uniform i : forall heads fuel, (length heads <= fuel)%nat ->
  look fuel heads i = flips (map snd heads) (fun again => one_of i (select again (map fst heads))).
Proof.
  intros heads fuel. revert heads. induction fuel as [|fuel IH]; intros heads L.
  { destruct heads; [|simpl in L; lia]. cbn. unfold one_of, occurrences. simpl. unfold Rdiv. ring. }
  cbn [look]. destruct (Nat.eq_dec (length heads) 0) as [Z|N].
  { destruct heads; [|discriminate]. cbn. unfold one_of, occurrences. simpl. unfold Rdiv. ring. }
  set (n := length heads) in *. assert (Hn : INR n <> 0) by (apply not_0_INR; lia).
  rewrite (total_ext _ (fun j => / INR n * flips (map snd heads) (fun again =>
    if nth j again false then (if (nth j (map fst heads) O =? i)%nat then 1 else 0)
    else one_of i (select (without j again) (without j (map fst heads)))))).
  2: { intros j J. apply in_seq in J. f_equal.
       rewrite (one_coin (map snd heads) j _ (fun again => one_of i (select again (without j (map fst heads)))))
         by (rewrite map_length; lia).
       rewrite (map_nth snd heads (O, 0) j : nth j (map snd heads) 0 = _),
         (map_nth fst heads (O, 0) j : nth j (map fst heads) O = _), <- !map_without.
       rewrite <- IH by (generalize (length_without j heads ltac:(lia)); lia).
       destruct (nth j heads (O, 0)). reflexivity. }
  rewrite (total_ext _ (fun j => flips (map snd heads) (fun again => / INR n * (
    if nth j again false then (if (nth j (map fst heads) O =? i)%nat then 1 else 0)
    else one_of i (select (without j again) (without j (map fst heads))))))) by (intros; symmetry; apply flips_scale).
  rewrite total_of_flips. apply flips_ext. intros again A. rewrite map_length in A. fold n in A.
  rewrite (total_ext _ (fun j => (if nth j again false then (if (nth j (map fst heads) O =? i)%nat then 1 else 0)
    else one_of i (select again (map fst heads))) * / INR n)).
  2: { intros j _. rewrite Rmult_comm. f_equal. destruct (nth j again false) eqn:E; [reflexivity|].
       rewrite select_without by (rewrite ?map_length; assumption || (symmetry; exact A)). reflexivity. }
  rewrite total_scales. unfold n at 1. rewrite <- (map_length fst heads) at 1.
  rewrite over_all_places by (rewrite map_length; symmetry; exact A).
  unfold one_of. set (l := select again (map fst heads)).
  destruct l as [|a l'] eqn:El; [unfold occurrences; simpl; unfold Rdiv; ring|]. rewrite <- El, A.
  assert (INR (length l) <> 0) by (rewrite El; apply not_0_INR; discriminate). subst l. field. split; assumption.
Qed.

(* Candidates in the order in which numbers fall on them, with their weights A and the probabilities w that they should
   have: a first coin shows heads with A / C, and what is looked at is taken with C w / A. *)
Definition looked_at (A : list Z) (w : list R) : nat -> R := fun i =>
  flips (map (fun a => IZR a / IZR largest) A) (fun heads =>
    look (length A) (select heads (combine (seq 0 (length A))
      (map (fun '(a, w) => IZR largest * w / IZR a) (combine A w)))) i).

Lemma length_of_heads {A} mask : forall l : list A, length l = length mask -> length (select mask l) = heads_of mask.
Proof.
  unfold heads_of. induction mask as [|[|] mask IH]; intros [|a l] L; try discriminate; try reflexivity; simpl in *;
    [f_equal|]; apply IH; congruence.
Qed.

Lemma select_at_most {A} mask : forall l : list A, (length (select mask l) <= length l)%nat.
Proof.
  induction mask as [|[|] mask IH]; intros [|a l]; simpl; try lia; specialize (IH l); lia.
Qed.

Lemma map_select {A B} (f : A -> B) mask : forall l, map f (select mask l) = select mask (map f l).
Proof. induction mask as [|[|] mask IH]; intros [|a l]; simpl; congruence. Qed.

Lemma occurrences_of_heads i mask : forall k, occurrences (k + i) (select mask (seq k (length mask)))
  = if nth i mask false then 1 else 0.
Proof.
  assert (None_below : forall mask k j, (j < k)%nat -> occurrences j (select mask (seq k (length mask))) = 0).
  { clear. unfold occurrences, total. induction mask as [|b mask IH]; intros k j J; [reflexivity|].
    cbn [length seq select]. destruct b; cbn [map fold_right]; rewrite IH by lia; [|reflexivity].
    rewrite (proj2 (Nat.eqb_neq k j)) by lia. ring. }
  revert i. induction mask as [|b mask IH]; intros i k; [destruct i; reflexivity|]. cbn [length seq select].
  destruct i as [|i]; cbn [nth].
  - unfold occurrences, total in *. destruct b; cbn [map fold_right]; rewrite None_below by lia; [|reflexivity].
    rewrite Nat.add_0_r, Nat.eqb_refl. ring.
  - replace (k + S i)%nat with (S k + i)%nat by lia. rewrite <- (IH i (S k)).
    unfold occurrences, total. destruct b; cbn [map fold_right]; [|reflexivity].
    rewrite (proj2 (Nat.eqb_neq k (S k + i))) by lia. ring.
Qed.

Lemma map_combine {A B} (l : list A) : forall m : list B, length m = length l ->
  map fst (combine l m) = l /\ map snd (combine l m) = m.
Proof.
  induction l as [|a l IH]; intros [|b m] L; try discriminate; [split; reflexivity|]. injection L as L.
  destruct (IH m L). split; simpl; congruence.
Qed.

Theorem permute_and_flip_is_exact A w i : length w = length A ->
  (forall a x, In (a, x) (combine A w) -> a = 0%Z -> x = 0) -> looked_at A w i = uniform_of_heads w i.
Proof.
  intros L Z. unfold looked_at, uniform_of_heads. set (n := length A) in *.
  set (qs := map (fun '(a, w) => IZR largest * w / IZR a) (combine A w)).
  assert (Lq : length qs = n) by (unfold qs; rewrite map_length, combine_length; lia).
  destruct (map_combine (seq 0 n) qs) as [Ids Qs]; [rewrite seq_length; exact Lq|].
  transitivity (flips (map (fun a => IZR a / IZR largest) A) (fun heads =>
    flips (select heads qs) (fun again => one_of i (select again (select heads (seq 0 n)))))).
  { apply flips_ext. intros heads H. rewrite looking_is_uniform.
    - rewrite !map_select, Ids, Qs. reflexivity.
    - eapply Nat.le_trans; [apply select_at_most|]. rewrite combine_length, seq_length. lia. }
  rewrite two_coins by (rewrite ?map_length, ?seq_length; assumption || reflexivity).
  replace (map _ (combine _ qs)) with w.
  - apply flips_ext. intros heads H. unfold one_of. replace n with (length heads) by congruence.
    change i with (0 + i)%nat at 1. rewrite occurrences_of_heads, length_of_heads by apply seq_length.
    destruct (nth i heads false); unfold Rdiv; ring.
  - unfold qs, n in *. clear - L Z. revert w L Z. induction A as [|a A IH]; intros [|x w] L Z; try discriminate;
      [reflexivity|]. injection L as L. cbn [combine map].
    rewrite <- (IH w L) by (intros b y I; apply Z; right; exact I). f_equal.
    assert (C : IZR largest <> 0) by (apply Rgt_not_eq, (IZR_lt 0); reflexivity).
    destruct (Z.eq_dec a 0) as [E|N].
    + rewrite (Z a x (or_introl eq_refl) E). unfold Rdiv. ring.
    + apply not_0_IZR in N. field. split; assumption.
Qed.

(* The first coin: the upper 51 bits of a word are below A with probability A / C. *)
Theorem heads_are_exact a : (0 <= a <= largest)%Z -> mean 64 (fun word => one (shows_head a word)) = IZR a / IZR
  largest.
Proof.
  intros H. change 64%nat with (13 + 51)%nat. rewrite mean_split.
  transitivity (mean 51 (fun u => one (u <? a)%Z)); [|apply (mean_below 51 a H)]. apply mean_ext.
  intros u _. rewrite <- (mean_const 13 (one (u <? a)%Z)). apply mean_ext. intros v V. change (2^ 13) with (2 ^ 13)%Z
    in *.
  unfold shows_head. rewrite Z.shiftr_div_pow2, Z.add_comm, Z.div_add, Z.div_small by lia. reflexivity.
Qed.

(* Means over 128 bits are not to be computed. *)
Local Opaque mean.

(* The exponential mechanism. Which item a number falls on, as intervals. *)
Lemma falls_on_interval lengths : forall v i, List.Forall (Z.le 0) lengths -> (i < length lengths)%nat -> (0 <= v)%Z ->
  (falls_on v lengths =? i)%nat
  = ((Model.total (firstn i lengths) <=? v) && (v <? Model.total (firstn i lengths) + nth i lengths 0))%Z%bool.
Proof.
  assert (Positive : forall i lengths, List.Forall (Z.le 0) lengths -> (0 <= Model.total (firstn i lengths))%Z).
  { clear. intros i lengths F. revert i. induction F as [|a lengths A F IH]; intros [|i]; simpl; try lia.
    specialize (IH i). lia. }
  induction lengths as [|a lengths IH]; intros v i F I V; [simpl in I; lia|]. inversion F as [|? ? A F']; subst.
  cbn [falls_on]. destruct i as [|i]; cbn [firstn nth Model.total fold_right].
  - destruct (Z.ltb_spec v a), (Z.leb_spec 0 v), (Z.ltb_spec v (0 + a)); try lia; reflexivity.
  - specialize (Positive i lengths F'). fold (Model.total (firstn i lengths)).
    destruct (Z.ltb_spec v a).
    + destruct (Z.leb_spec (a + Model.total (firstn i lengths)) v); [lia|reflexivity].
    + change (S ?x =? S i)%nat with (x =? i)%nat. rewrite IH by (assumption || (simpl in I; lia)).
      apply eq_true_iff_eq. rewrite !andb_true_iff, !Z.leb_le, !Z.ltb_lt. lia.
Qed.

Definition falls (lengths : list Z) (i : nat) (result : option (Z * list Z)) : bool :=
  match result with Some (v, _) => (falls_on v lengths =? i)%nat | None => false end.

Lemma draws_const k c : draws k (fun _ => c) = c.
Proof.
  induction k as [|k IH]; [reflexivity|]. cbn [draws]. transitivity (mean 128 (fun _ => c)); [|apply mean_const].
  apply mean_ext. intros. exact IH.
Qed.
Lemma draws_scale k : forall c f, draws k (fun words => c * f words) = c * draws k f.
Proof.
  induction k as [|k IH]; intros c f; cbn [draws]; [reflexivity|]. rewrite <- mean_scale. apply mean_ext. intros.
    apply IH.
Qed.
Lemma draws_plus k : forall f g, draws k (fun words => f words + g words) = draws k f + draws k g.
Proof.
  induction k as [|k IH]; intros f g; cbn [draws]; [reflexivity|]. rewrite <- mean_plus. apply mean_ext. intros.
    apply IH.
Qed.
Lemma draws_total k (f : nat -> list Z -> R) l :
  draws k (fun words => total (map (fun j => f j words) l)) = total (map (fun j => draws k (f j)) l).
Proof.
  unfold total. induction l as [|j l IH]; cbn [map fold_right].
  - apply draws_const.
  - rewrite draws_plus, IH. reflexivity.
Qed.

Lemma limit_of_total (f : nat -> nat -> R) (x : R) l : (forall j, In j l -> is_lim_seq (f j) x) ->
  is_lim_seq (fun k => total (map (fun j => f j k) l)) (INR (length l) * x).
Proof.
  unfold total. induction l as [|j l IH]; intros H; cbn [map fold_right].
  - simpl. rewrite Rmult_0_l. apply is_lim_seq_const.
  - cbn [length]. rewrite S_INR. replace ((INR (length l) + 1) * x) with (x + INR (length l) * x) by ring.
    apply is_lim_seq_plus'; [apply H; left; reflexivity|]. apply IH. intros i I. apply H. right. exact I.
Qed.

Lemma one_of_an_interval v s c : one ((s <=? v) && (v <? s + Z.of_nat c))%Z
  = total (map (fun j => one (v =? s + Z.of_nat j)%Z) (seq 0 c)).
Proof.
  unfold total. induction c as [|c IH].
  - destruct (Z.leb_spec s v), (Z.ltb_spec v (s + Z.of_nat 0)); try reflexivity; lia.
  - rewrite seq_S, map_app, fold_right_app. cbn [map fold_right Nat.add].
    assert (E : forall l x, fold_right Rplus x l = fold_right Rplus 0 l + x)
      by (clear; induction l as [|y l IH]; intros x; simpl; [ring|rewrite (IH x); ring]).
    rewrite E, <- IH, Rplus_0_r. destruct (Z.leb_spec s v), (Z.ltb_spec v (s + Z.of_nat (S c))),
      (Z.ltb_spec v (s + Z.of_nat c)), (Z.eqb_spec v (s + Z.of_nat c)); simpl; lra || lia.
Qed.

Lemma part_of_total lengths i : List.Forall (Z.le 0) lengths -> (i < length lengths)%nat ->
  (0 <= Model.total (firstn i lengths) /\ 0 <= nth i lengths 0
   /\ Model.total (firstn i lengths) + nth i lengths 0 <= Model.total lengths)%Z.
Proof.
  intros F. revert i. induction F as [|a lengths A F IH]; intros [|i] I; simpl in I; try lia.
  - cbn [firstn nth Model.total fold_right]. split; [lia|]. split; [exact A|].
    assert (0 <= fold_right Z.add 0 lengths)%Z by (clear - F; induction F; simpl; lia). lia.
  - specialize (IH i ltac:(lia)). unfold Model.total in *. cbn [firstn nth fold_right]. lia.
Qed.

(* A number falls on each item with a probability in proportion to its length. *)
Theorem falls_in_proportion lengths i : List.Forall (Z.le 0) lengths -> (i < length lengths)%nat ->
  (1 <= Model.total lengths < wide)%Z ->
  is_lim_seq (fun k => draws k (fun words => one (falls lengths i (uniform_below (Model.total lengths) words))))
             (IZR (nth i lengths 0%Z) / IZR (Model.total lengths)).
Proof.
  intros F I T. destruct (part_of_total lengths i F I) as [S0 [C0 SC]].
  set (n := Model.total lengths) in *. set (s := Model.total (firstn i lengths)) in *. set (c := nth i lengths 0%Z)
    in *.
  apply (is_lim_seq_ext_loc (fun k => total (map (fun j => draws k (fun words =>
    one (gives (s + Z.of_nat j) (uniform_below n words)))) (seq 0 (Z.to_nat c))))).
  - exists 2%nat. intros k K. rewrite <- (draws_total k (fun j words => one (gives (s + Z.of_nat j) (uniform_below n
    words)))).
    apply draws_agree. intros words L W. generalize (uniform_below_is_right n words ltac:(lia) W ltac:(lia)).
    unfold falls, gives. destruct (uniform_below n words) as [[v rest]|]; intros H.
    + assert (V : (0 <= v)%Z).
      { destruct H as [_ H]. assert (0 <= number words)%Z.
        { clear - W. unfold number. assert (0 <= 0)%Z by lia. revert H. generalize 0%Z at 2 4. induction W as [|w
          words R W IH];
          intros u U; [exact U|]. cbn [number_from fold_left]. apply IH. assert (0 < wide)%Z by reflexivity. nia. }
        assert (0 < size words)%Z by (apply Z.pow_pos_nonneg; [reflexivity|lia]). nia. }
      rewrite falls_on_interval by assumption. fold s c. rewrite <- (Z2Nat.id c) at 2 by exact C0.
      symmetry. apply one_of_an_interval.
    + unfold total. clear. induction (seq 0 (Z.to_nat c)) as [|j l IH]; [reflexivity|]. cbn [map fold_right].
      rewrite IH. simpl. ring.
  - replace (IZR c / IZR n) with (INR (length (seq 0 (Z.to_nat c))) * / IZR n).
    + apply (limit_of_total (fun j k => draws k (fun words => one (gives (s + Z.of_nat j) (uniform_below n words))))).
      intros j J. apply in_seq in J. apply uniform_below_is_uniform; lia.
    + rewrite seq_length, INR_IZR_INZ, Z2Nat.id by exact C0. reflexivity.
Qed.

(* A comparison U w < a accepts with probability a / w, in the limit of all bits of U. *)
Definition accepted (w a : R) (m : nat) : R :=
  mean m (fun u => one (if Rle_dec ((IZR u + 1) * w) (a * IZR (2^ m)) then true else false)).

Lemma accepted_in_the_limit w a : 0 < w -> 0 <= a <= w -> is_lim_seq (accepted w a) (a / w).
Proof.
  intros W A. set (x := a / w).
  assert (X : 0 <= x <= 1).
  { unfold x. split; [apply Rdiv_le_0_compat; lra|]. apply (Rle_div_l _ _ _ W). lra. }
  assert (B : forall m, x - (1/2) ^ m <= accepted w a m <= x).
  { intros m. assert (P : 0 < IZR (2^ m)) by apply IZR_lt, pow_positive.
    assert (Q : (1/2) ^ m = / IZR (2^ m)).
    { rewrite <- (pow_IZR 2), <- pow_inv. f_equal. lra. }
    set (y := x * IZR (2^ m)). assert (Y : a * IZR (2^ m) = y * w) by (unfold y, x; field; lra).
    assert (F : accepted w a m = IZR (Zfloor y) / IZR (2^ m)).
    { unfold accepted. rewrite <- mean_below.
      - apply mean_ext. intros u _. f_equal. rewrite Y. destruct (Rle_dec _ _) as [H|H], (Z.ltb_spec u (Zfloor y)) as
        [L|L];
          try reflexivity; exfalso.
        + apply Rmult_le_reg_r in H; [|exact W]. rewrite <- plus_IZR in H. apply Zfloor_lub in H. lia.
        + apply H, Rmult_le_compat_r; [lra|]. rewrite <- plus_IZR. eapply Rle_trans; [apply IZR_le|apply Zfloor_lb].
          lia.
      - split; [apply Zfloor_lub; unfold y; apply Rmult_le_pos; lra|].
        apply le_IZR. eapply Rle_trans; [apply Zfloor_lb|]. unfold y. nra. }
    rewrite F, Q. generalize (Zfloor_lb y) (Zfloor_ub y). intros L U.
    replace x with (y / IZR (2^ m)) by (unfold y; field; lra). unfold Rdiv.
    rewrite <- (Rmult_1_l (/ IZR (2^ m))) at 2. rewrite <- Rmult_minus_distr_r.
    split; apply Rmult_le_compat_r; try lra; apply Rlt_le, Rinv_0_lt_compat, P. }
  apply (is_lim_seq_le_le (fun m => x - (1/2) ^ m) _ (fun _ => x)); [exact B| |apply is_lim_seq_const].
  replace (Finite x) with (Rbar_plus x (Rbar_opp 0)) by (simpl; f_equal; ring).
  apply is_lim_seq_minus'; [apply is_lim_seq_const|]. apply is_lim_seq_geom. rewrite Rabs_pos_eq; lra.
Qed.

(* An attempt of the exponential mechanism: a block by the lengths G, a candidate of it by the weights A, and a
   comparison U'' G A < C w S. Here are fresh words for each of the three. *)
Definition attempt_gives (G A : list Z) (w : R) (B i k : nat) : R :=
  draws k (fun words => one (falls G B (uniform_below (Model.total G) words))
    * draws k (fun words => one (falls A i (uniform_below (Model.total A) words))
      * accepted (IZR (nth B G 0%Z * nth i A 0%Z)) (IZR largest * w * IZR (Model.total A)) k)).

Theorem attempts_are_exact G A w B i :
  List.Forall (Z.le 0) G -> List.Forall (Z.le 0) A -> (B < length G)%nat -> (i < length A)%nat ->
  (1 <= Model.total G < wide)%Z -> (1 <= Model.total A < wide)%Z -> (0 < nth B G 0 * nth i A 0)%Z ->
  0 <= IZR largest * w * IZR (Model.total A) <= IZR (nth B G 0 * nth i A 0)%Z ->
  is_lim_seq (attempt_gives G A w B i) (IZR largest * w / IZR (Model.total G)).
Proof.
  intros FG FA HB HI TG TA P H.
  apply (is_lim_seq_ext (fun k => draws k (fun words => one (falls G B (uniform_below (Model.total G) words)))
    * (draws k (fun words => one (falls A i (uniform_below (Model.total A) words)))
       * accepted (IZR (nth B G 0%Z * nth i A 0%Z)) (IZR largest * w * IZR (Model.total A)) k))).
  - intros k. unfold attempt_gives. rewrite (Rmult_comm (draws k _)), <- draws_scale. apply draws_agree. intros words
    _ _.
    rewrite Rmult_comm. f_equal. rewrite Rmult_comm, <- draws_scale. apply draws_agree. intros. ring.
  - apply IZR_lt in P. assert (NG : 0 < IZR (Model.total G)) by (apply IZR_lt; lia).
    assert (NA : 0 < IZR (Model.total A)) by (apply IZR_lt; lia).
    replace (Finite (IZR largest * w / IZR (Model.total G))) with (Finite (IZR (nth B G 0%Z) / IZR (Model.total G)
      * (IZR (nth i A 0%Z) / IZR (Model.total A)
         * (IZR largest * w * IZR (Model.total A) / IZR (nth B G 0%Z * nth i A 0%Z))))).
    + apply is_lim_seq_mult'; [apply falls_in_proportion; assumption|]. apply is_lim_seq_mult';
        [apply falls_in_proportion; assumption|]. apply accepted_in_the_limit; assumption.
    + f_equal. rewrite mult_IZR in *. field. repeat split; try lra; intros Z; rewrite Z in P; lra.
Qed.

(* That comparison is one of a probability: G is the least whole number from A' S / C on, where A' is the weight of the
   block, and weights cover what the law asks for. *)
Theorem acceptance_is_a_probability a_block a_candidate sum w_block w_candidate w : (0 <= sum)%Z ->
  0 <= w_block -> 0 <= w_candidate -> w <= w_block * w_candidate ->
  IZR largest * w_block <= IZR a_block -> IZR largest * w_candidate <= IZR a_candidate ->
  IZR largest * w * IZR sum <= IZR (length_by a_block sum * a_candidate).
Proof.
  unfold length_by.
  intros S0 B0 C0 Ww HB HC. rewrite mult_IZR.
  assert (Cp : 0 < IZR largest) by (apply IZR_lt; reflexivity). assert (0 <= IZR sum) by (apply IZR_le; exact S0).
  assert (G : IZR a_block * IZR sum <= IZR largest * IZR ((a_block * sum + (largest - 1)) / largest)).
  { rewrite <- !mult_IZR. apply IZR_le. assert (0 < largest)%Z by reflexivity.
    generalize (Z.div_mod (a_block * sum + (largest - 1)) largest ltac:(lia))
      (Z.mod_pos_bound (a_block * sum + (largest - 1)) largest ltac:(lia)). lia. }
  set (g := IZR ((a_block * sum + (largest - 1)) / largest)) in *.
  apply Rmult_le_reg_l with (IZR largest); [exact Cp|].
  assert (K : 0 <= IZR largest * w_block) by (apply Rmult_le_pos; lra).
  assert (K' : 0 <= IZR largest * w_candidate) by (apply Rmult_le_pos; lra).
  apply Rle_trans with (IZR a_block * IZR sum * IZR a_candidate).
  - apply Rle_trans with (IZR largest * w_block * (IZR largest * w_candidate) * IZR sum).
    + replace (IZR largest * (IZR largest * w * IZR sum)) with (IZR largest * IZR largest * IZR sum * w) by ring.
      replace (IZR largest * w_block * (IZR largest * w_candidate) * IZR sum)
        with (IZR largest * IZR largest * IZR sum * (w_block * w_candidate)) by ring.
      apply Rmult_le_compat_l; [|exact Ww]. repeat apply Rmult_le_pos; lra.
    + replace (IZR a_block * IZR sum * IZR a_candidate) with (IZR a_block * IZR a_candidate * IZR sum) by ring.
      apply Rmult_le_compat_r; [assumption|]. apply Rmult_le_compat; assumption.
  - rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [lra|exact G].
Qed.

(* Attempts that give a candidate with C w / n, and any with C all / n, until one gives something. *)
Lemma first_accepted w all n : 0 < all -> IZR largest * all <= n ->
  is_series (fun attempts => (1 - IZR largest * all / n) ^ attempts * (IZR largest * w / n)) (w / all).
Proof.
  intros T N. assert (Cp : 0 < IZR largest) by (apply IZR_lt; reflexivity).
  assert (P : 0 < IZR largest * all) by (apply Rmult_lt_0_compat; assumption).
  replace (w / all) with (IZR largest * w / n / (1 - (1 - IZR largest * all / n))) by (field; repeat split; lra).
  apply first_success. assert (0 < IZR largest * all / n <= 1); [|lra].
  split; [apply Rdiv_lt_0_compat; lra|]. apply Rle_div_l; lra.
Qed.

(* So it is for every candidate in every block, by the weights that the code computes. *)
Theorem proposals_are_covered l rate block_depth depth sum :
  gaussian l = false -> (1 <= numerator l)%Z -> (1 <= denominator l)%Z -> sound_rate l rate = true ->
  (numerator l <= 2 ^ 44 * denominator l)%Z ->
  (0 <= block_depth <= 2 ^ 51)%Z -> (0 <= depth <= 2 ^ 51)%Z -> (0 <= sum)%Z ->
  IZR largest * density l (Z.min (block_depth + depth) (2 ^ 51)) * IZR sum
    <= IZR (length_by (weight rate block_depth) sum * weight rate depth).
Proof.
  intros G N D R Scale HB HD S0.
  destruct (weights_cover l rate block_depth G N D R HB) as [CB [OB _]].
  destruct (weights_cover l rate depth G N D R HD) as [CD [OD _]].
  assert (P : forall x, 0 <= density l x) by (intros; apply Rlt_le, exp_pos).
  assert (NP : 0 < IZR (numerator l)) by (apply IZR_lt; lia).
  destruct (Z.min_spec (block_depth + depth) (2 ^ 51)) as [[_ ->]|[_ ->]].
  - apply acceptance_is_a_probability with (density l block_depth) (density l depth); auto.
    right. unfold density. rewrite <- exp_plus. f_equal. unfold dividend, divisor. rewrite G, !mult_IZR, plus_IZR.
    field. lra.
  - assert (C : 0 < IZR largest) by (apply IZR_lt; reflexivity).
    apply acceptance_is_a_probability with (/ IZR largest) (/ IZR largest); try assumption;
      try (apply Rlt_le, Rinv_0_lt_compat, C); rewrite ?Rinv_r by lra; try (apply (IZR_le 1); assumption).
    rewrite <- Rinv_mult, <- mult_IZR. unfold density, dividend, divisor. rewrite G.
    apply Rle_trans with (exp (- (128))); [apply Raux.exp_le, Ropp_le_contravar|].
    + apply (proj1 (Rle_div_r _ _ _ NP)). rewrite <- mult_IZR. apply IZR_le. lia.
    + rewrite exp_Ropp. apply Rinv_le_contravar; [apply IZR_lt; reflexivity|].
      replace 128 with (INR 128 * 1) by (simpl; ring). rewrite <- exp_pow. apply Rle_trans with (2 ^ 128).
      * rewrite (pow_IZR 2). apply IZR_le. vm_compute. discriminate.
      * apply pow_incr. generalize exp_ineq1_le. intros E. specialize (E 1). lra.
Qed.

(* The exponential mechanism as it is drawn, for blocks of candidates: the depth of each block below the best score, and
   those of its candidates below the best of the block. Retired ones fill a block up. *)
Section Softmax.
Variables (l : law) (rate : float).
Hypothesis Exponential : gaussian l = false.
Hypothesis Numerator : (1 <= numerator l)%Z.
Hypothesis Denominator : (1 <= denominator l)%Z.
Hypothesis Rate : sound_rate l rate = true.
Hypothesis Scale : (numerator l <= 2 ^ 44 * denominator l)%Z.

Definition is_depth (d : Z) : Prop := (0 <= d <= 2 ^ 51 \/ d = retired)%Z.
Definition law_weight (above d : Z) : R := if (d <? retired)%Z then density l (Z.min (above + d) (2 ^ 51)) else 0.
Definition law_weights (block : Z * list Z) : list R := map (law_weight (fst block)) (snd block).
Definition drawn_length (block : Z * list Z) : Z :=
  length_by (weight rate (fst block)) (Model.total (map (weight rate) (snd block))).

Lemma weight_of_depth d : is_depth d ->
  (0 <= weight rate d <= largest)%Z /\ ((d < retired)%Z -> (0 <= d <= 2 ^ 51)%Z /\ (1 <= weight rate d)%Z).
Proof.
  intros [H| ->]; [|split; [split; discriminate|intros; lia]].
  generalize (proj2 (weights_cover l rate d Exponential Numerator Denominator Rate H)). intros W.
  split; [lia|]. intros _. split; [exact H|apply W].
Qed.

Lemma sum_of_depths ds : List.Forall is_depth ds -> List.Forall (Z.le 0) (map (weight rate) ds)
  /\ (0 <= Model.total (map (weight rate) ds) <= 2 ^ 51 * Z.of_nat (length ds))%Z.
Proof.
  induction 1 as [|d ds H _ [F IH]]; [split; [constructor|split; discriminate]|].
  destruct (weight_of_depth d H) as [W _]. unfold Model.total in *. unfold largest in W. cbn [map fold_right length].
  split; [constructor; [apply W|exact F]|lia].
Qed.

Lemma block_is_covered above ds : (0 <= above <= 2 ^ 51)%Z -> List.Forall is_depth ds ->
  IZR largest * total (law_weights (above, ds)) <= IZR (drawn_length (above, ds))
  /\ (0 <= drawn_length (above, ds) <= 2 ^ 51 * Z.of_nat (length ds))%Z.
Proof.
  intros HB HD. destruct (sum_of_depths ds HD) as [_ HS].
  destruct (weights_cover l rate above Exponential Numerator Denominator Rate HB) as [_ WB].
  unfold law_weights, drawn_length. cbn [fst snd]. set (sum := Model.total (map (weight rate) ds)) in *.
  assert (Cp : (0 < largest)%Z) by reflexivity.
  assert (B : (0 <= length_by (weight rate above) sum <= sum)%Z).
  { unfold length_by. split; [apply Z.div_pos; nia|]. apply Z.lt_succ_r, Z.div_lt_upper_bound; nia. }
  split; [|lia]. destruct (Z.eq_dec sum 0) as [E|N].
  - replace (total (map (law_weight above) ds)) with 0; [rewrite Rmult_0_r; apply IZR_le, B|].
    clear - Exponential Numerator Denominator Rate HD E. unfold sum, Model.total, total in *.
    induction HD as [|d ds H F IH]; [reflexivity|]. cbn [map fold_right] in *.
    destruct (weight_of_depth d H) as [W P]. destruct (sum_of_depths ds F) as [_ S]. unfold Model.total in S.
    rewrite <- IH by lia. unfold law_weight. destruct (Z.ltb_spec d retired) as [L|L]; [specialize (P L); lia|ring].
  - set (g := length_by (weight rate above) sum) in *.
    assert (Each : forall ds, List.Forall is_depth ds -> IZR largest * total (map (law_weight above) ds) * IZR sum
      <= IZR g * IZR (Model.total (map (weight rate) ds))).
    { unfold Model.total, total. induction 1 as [|d ds' H _ IH]; cbn [map fold_right]; [lra|]. rewrite plus_IZR.
      assert (IZR largest * law_weight above d * IZR sum <= IZR g * IZR (weight rate d)); [|lra].
      unfold law_weight. destruct H as [H| ->].
      - rewrite (proj2 (Z.ltb_lt d retired)) by (unfold retired; lia). rewrite <- mult_IZR.
        apply proposals_are_covered; assumption || apply HS.
      - rewrite Z.ltb_irrefl, retired_have_no_weight. lra. }
    apply Rmult_le_reg_r with (IZR sum); [apply IZR_lt; lia|]. exact (Each ds HD).
Qed.

Definition are_blocks (blocks : list (Z * list Z)) : Prop :=
  List.Forall (fun block => (0 <= fst block <= 2 ^ 51)%Z /\ List.Forall is_depth (snd block)) blocks.

Lemma in_part_of_total x : forall ws, List.Forall (Rle 0) ws -> In x ws -> x <= total ws.
Proof.
  unfold total. induction 1 as [|w ws W F IH]; intros I; [contradiction|]. cbn [fold_right].
  assert (S := total_is_positive ws F). unfold total in S. destruct I as [->|I]; [lra|specialize (IH I); lra].
Qed.

Lemma blocks_are_covered blocks : are_blocks blocks ->
  IZR largest * total (flat_map law_weights blocks) <= IZR (Model.total (map drawn_length blocks))
  /\ (Model.total (map drawn_length blocks) <= 2 ^ 51 * Z.of_nat (length (flat_map snd blocks)))%Z
  /\ List.Forall (Z.le 0) (map drawn_length blocks).
Proof.
  induction 1 as [|[above ds] blocks [HB HD] _ [C [N F]]]; [split; [cbn; lra|split; [discriminate|constructor]]|].
  destruct (block_is_covered above ds HB HD) as [C' N']. unfold Model.total in *.
  cbn [flat_map map fold_right fst snd] in *. rewrite total_in_parts, app_length, plus_IZR.
  split; [lra|]. split; [lia|constructor; [apply N'|exact F]].
Qed.

(* With fewer than 2^77 candidates, the first that is accepted is each one with the probability w / W, where w is
   e^(-depth / b). *)
Theorem softmax_is_exact blocks B i above ds d : are_blocks blocks ->
  (Z.of_nat (length (flat_map snd blocks)) < 2 ^ 77)%Z ->
  nth_error blocks B = Some (above, ds) -> nth_error ds i = Some d -> (d < retired)%Z ->
  let w := density l (Z.min (above + d) (2 ^ 51)) in
  let all := total (flat_map law_weights blocks) in
  let gives w := IZR largest * w / IZR (Model.total (map drawn_length blocks)) in
  is_lim_seq (attempt_gives (map drawn_length blocks) (map (weight rate) ds) w B i) (gives w)
  /\ is_series (fun attempts => (1 - gives all) ^ attempts * gives w) (w / all).
Proof.
  intros H Count EB Ei R w all gives. destruct (blocks_are_covered blocks H) as [C [N F]].
  assert (IB := nth_error_In _ _ EB). assert (Ii := nth_error_In _ _ Ei).
  destruct (proj1 (List.Forall_forall _ _) H _ IB) as [HB HD]. cbn [fst snd] in HB, HD.
  destruct (weight_of_depth d (proj1 (List.Forall_forall _ _) HD d Ii)) as [_ Wd].
  destruct (Wd R) as [D W]. clear Wd.
  destruct (weights_cover l rate above Exponential Numerator Denominator Rate HB) as [_ WB].
  destruct (sum_of_depths ds HD) as [FA HS].
  assert (LB : (B < length (map drawn_length blocks))%nat)
    by (rewrite map_length; apply nth_error_Some; rewrite EB; discriminate).
  assert (Li : (i < length (map (weight rate) ds))%nat)
    by (rewrite map_length; apply nth_error_Some; rewrite Ei; discriminate).
  assert (NB : nth B (map drawn_length blocks) 0%Z = drawn_length (above, ds))
    by (apply nth_error_nth, map_nth_error, EB).
  assert (Ni : nth i (map (weight rate) ds) 0%Z = weight rate d) by (apply nth_error_nth, map_nth_error, Ei).
  assert (PB := part_of_total _ _ F LB). assert (Pi := part_of_total _ _ FA Li). rewrite NB in PB. rewrite Ni in Pi.
  assert (G : (1 <= drawn_length (above, ds))%Z).
  { unfold drawn_length, length_by. cbn [fst snd]. apply Z.div_le_lower_bound; [reflexivity|]. nia. }
  assert (L : (Z.of_nat (length ds) <= Z.of_nat (length (flat_map snd blocks)))%Z).
  { apply inj_le. clear - IB. induction blocks as [|b blocks IH]; [contradiction|]. cbn [flat_map].
    rewrite app_length. destruct IB as [->|I]; [cbn [snd]; lia|specialize (IH I); lia]. }
  assert (Wide : (2 ^ 51 * 2 ^ 77 = wide)%Z) by reflexivity.
  assert (W0 : 0 < w) by apply exp_pos.
  assert (All : 0 < all).
  { apply Rlt_le_trans with w; [exact W0|]. unfold all. apply in_part_of_total.
    - clear - H. apply List.Forall_forall. intros x X. apply in_flat_map in X. destruct X as [b [_ X]].
      apply in_map_iff in X. destruct X as [d [<- _]]. unfold law_weight.
      destruct (d <? retired)%Z; [apply Rlt_le, exp_pos|apply Rle_refl].
    - apply in_flat_map. exists (above, ds). split; [exact IB|]. apply in_map_iff. exists d. split; [|exact Ii].
      unfold law_weight. cbn [fst]. rewrite (proj2 (Z.ltb_lt d retired) R). reflexivity. }
  split; [|apply first_accepted; assumption].
  apply attempts_are_exact; rewrite ?NB, ?Ni; try assumption; try lia. split.
  - apply Rmult_le_pos; [|apply IZR_le, HS].
    apply Rmult_le_pos; [apply (IZR_le 0); discriminate|apply Rlt_le, W0].
  - unfold w, drawn_length. cbn [fst snd]. apply proposals_are_covered; assumption || apply HS.
Qed.
(* So permute-and-flip as drawn, with the weights of the code, has its law, and second coins have probabilities. *)
Theorem permute_and_flip_is_drawn ds i : List.Forall is_depth ds ->
  looked_at (map (weight rate) ds) (map (law_weight 0) ds) i = uniform_of_heads (map (law_weight 0) ds) i
  /\ List.Forall (fun d => 0 <= IZR largest * law_weight 0 d <= IZR (weight rate d)) ds.
Proof.
  intros H. assert (Q : List.Forall (fun d => 0 <= IZR largest * law_weight 0 d <= IZR (weight rate d)) ds).
  { eapply List.Forall_impl; [|exact H]. intros d [D| ->]; unfold law_weight.
    - rewrite (proj2 (Z.ltb_lt d retired)), Z.add_0_l, Z.min_l by (unfold retired; lia).
      split; [|apply (weights_cover l rate d); assumption].
      apply Rmult_le_pos; [apply (IZR_le 0); discriminate|apply Rlt_le, exp_pos].
    - rewrite Z.ltb_irrefl, retired_have_no_weight. lra. }
  split; [|exact Q]. apply permute_and_flip_is_exact; [rewrite !map_length; reflexivity|].
  assert (C : 0 < IZR largest) by (apply IZR_lt; reflexivity). clear H.
  induction Q as [|d ds' B _ IH]; intros a x I E; cbn [map combine] in I; [contradiction|].
  destruct I as [I|I]; [|exact (IH a x I E)]. injection I as Ea Ex. rewrite Ea, Ex, E in B.
  apply Rmult_eq_reg_l with (IZR largest); lra.
Qed.
End Softmax.

(* What the code compares, with intervals at every precision, are these sides: U'' (A / C) (G / 2^62) and w S / 2^62. So
   by is_below_is_right the answer is what all bits of U'' would say. *)
Section Comparison.
Variables (l : law) (rate : float) (at_precision : Z -> constants).
Hypothesis Numerator : (1 <= numerator l)%Z.
Hypothesis Denominator : (1 <= denominator l)%Z.
Hypothesis Constants : forall n, (1 <= n)%Z -> sound_constants (at_precision n) /\ limbs (at_precision n) = n.

Lemma unit_splits n bits : (0 <= bits <= 64 * n)%Z -> Integers.unit n = (2 ^ (64 * n - bits) * 2 ^ bits)%Z.
Proof. intros H. unfold Integers.unit. rewrite <- Z.pow_add_r by lia. f_equal. lia. Qed.
Lemma part_is x bits n : (0 <= bits <= 64 * n)%Z -> part x bits n = (x * 2 ^ (64 * n - bits))%Z.
Proof.
  intros H. unfold part. rewrite (unit_splits n bits H), Z.mul_assoc. apply Z.div_mul, Z.pow_nonzero; lia.
Qed.

Theorem comparisons_hold p : (0 <= weight rate (weighed p))%Z -> (0 <= depth p)%Z -> (0 <= block_length p)%Z ->
  (0 <= block_sum p)%Z ->
  hold (IZR (weight rate (weighed p)) / IZR largest * (IZR (block_length p) / IZR (2 ^ 62)))
       (density l (depth p) * (IZR (block_sum p) / IZR (2 ^ 62))) (proposal_sides l rate at_precision p).
Proof.
  intros HA HD HG HS n N. unfold proposal_sides.
  generalize (density_between l at_precision Numerator Denominator Constants (depth p) HD n ltac:(lia)).
  destruct (density_bounds l at_precision n (depth p)) as [low high]. cbn [fst snd]. intros D.
  revert HA HG HS. generalize (weight rate (weighed p)) (block_length p) (block_sum p). intros A G S HA HG HS.
  rewrite !part_is by lia.
  assert (U : (0 < Integers.unit n)%Z) by (apply Z.pow_pos_nonneg; lia). assert (U' := U). apply IZR_lt in U'.
  assert (W : times n (A * 2 ^ (64 * n - 51)) (G * 2 ^ (64 * n - 62)) = (A * G * 2 ^ (64 * n - 113))%Z).
  { rewrite times_is by lia. replace (A * 2 ^ (64 * n - 51) * (G * 2 ^ (64 * n - 62)))%Z
      with (A * G * 2 ^ (64 * n - 113) * Integers.unit n)%Z; [apply Z.div_mul; lia|].
    transitivity (A * G * (2 ^ (64 * n - 51) * 2 ^ (64 * n - 62)))%Z; [|ring]. unfold Integers.unit.
    rewrite <- Z.mul_assoc, <- !Z.pow_add_r by lia. do 2 f_equal. lia. }
  rewrite W. split; [apply Z.mul_nonneg_nonneg; [nia|apply Z.pow_nonneg; lia]|]. split; [|split].
  - replace (IZR A / IZR largest * (IZR G / IZR (2 ^ 62)) * IZR (Integers.unit n)) with (IZR (A * G * 2 ^ (64 * n -
    113)));
      [lra|].
    rewrite (unit_splits n 113) by lia. rewrite !mult_IZR. change (IZR (2 ^ 113)) with (IZR (largest * 2 ^ 62)).
    rewrite mult_IZR. field. split; apply Rgt_not_eq, IZR_lt; reflexivity.
  - assert (Y : IZR (S * 2 ^ (64 * n - 62)) = IZR S / IZR (2 ^ 62) * IZR (Integers.unit n)).
    { rewrite (unit_splits n 62) by lia. rewrite !mult_IZR. field. apply Rgt_not_eq, IZR_lt; reflexivity. }
    assert (Y0 : 0 <= IZR (S * 2 ^ (64 * n - 62))) by (apply IZR_le, Z.mul_nonneg_nonneg; [|apply Z.pow_nonneg]; lia).
    generalize (down (low * (S * 2 ^ (64 * n - 62))) (Integers.unit n) U)
      (down (high * (S * 2 ^ (64 * n - 62))) (Integers.unit n) U).
    rewrite <- !times_is by lia. rewrite !plus_IZR, !(mult_IZR low), !(mult_IZR high).
    assert (X : forall x, x * IZR (S * 2 ^ (64 * n - 62)) / IZR (Integers.unit n) = x * (IZR S / IZR (2 ^ 62)))
      by (intros x; rewrite Y; field; split; (lra || (apply Rgt_not_eq, IZR_lt; reflexivity))).
    rewrite !X. assert (Q : 0 <= IZR S / IZR (2 ^ 62))
      by (apply Rdiv_le_0_compat; [apply IZR_le; exact HS|apply IZR_lt; reflexivity]).
    replace (density l (depth p) * (IZR S / IZR (2 ^ 62)) * IZR (Integers.unit n))
      with (density l (depth p) * IZR (Integers.unit n) * (IZR S / IZR (2 ^ 62))) by ring.
    assert (IZR low * (IZR S / IZR (2 ^ 62)) <= density l (depth p) * IZR (Integers.unit n) * (IZR S / IZR (2 ^ 62)))
      by (apply Rmult_le_compat_r; [exact Q|apply D]).
    assert (density l (depth p) * IZR (Integers.unit n) * (IZR S / IZR (2 ^ 62)) <= IZR high * (IZR S / IZR (2 ^ 62)))
      by (apply Rmult_le_compat_r; [exact Q|apply D]).
    intros [L1 L2] [H1 H2]. split; lra.
  - intros _. exists (A * G * 2 ^ 16)%Z. unfold Integers.unit. rewrite <- !Z.mul_assoc. do 2 f_equal.
    rewrite <- !Z.pow_add_r by lia. f_equal. lia.
Qed.
End Comparison.
