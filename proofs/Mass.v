(* Each value of the bins is the outcome of a trial with a probability proportional to f, exactly. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Flocq Require Import Core.
From Dpnoise Require Import Model Words Sound Trial.
Import ListNotations.
Open Scope R_scope.

(* The bins follow each other without gap and end where the tail begins; in units of 2^shift. *)
Definition unit_start (bin : Z) : Z := start_of bin * 2 ^ e_of bin.

Lemma bins_are_apart a b : (0 <= a < 63)%Z -> (0 <= b < 63)%Z -> (a < b)%Z
  -> (unit_start a + 2 ^ e_of a <= unit_start b)%Z.
Proof.
  intros A B H.
  assert (C : forallb (fun a => forallb (fun b => implb (a <? b) (unit_start a + 2 ^ e_of a <=? unit_start b))%Z
    (indices 63)) (indices 63) = true)
    by (vm_compute; reflexivity).
  rewrite forallb_forall in C. generalize (C a (in_indices 63 a A)). rewrite forallb_forall. intros D.
  generalize (D b (in_indices 63 b B)). rewrite (proj2 (Z.ltb_lt a b) H). apply Z.leb_le.
Qed.

Lemma bins_cover u : (0 <= u < 216)%Z -> exists h, (0 <= h < 63)%Z /\ (unit_start h <= u < unit_start h + 2 ^ e_of h)%Z.
Proof.
  intros U.
  assert (C : forallb (fun u => existsb (fun h => (unit_start h <=? u) && (u <? unit_start h + 2 ^ e_of h))%Z (indices
    63)) (indices 216) = true)
    by (vm_compute; reflexivity).
  rewrite forallb_forall in C. generalize (C u (in_indices 216 u U)). rewrite existsb_exists. intros [h [I H]].
  apply andb_true_iff in H. rewrite Z.leb_le, Z.ltb_lt in H. exists h. split; [|exact H].
  unfold indices in I. apply in_map_iff in I. destruct I as [n [<- N]]. apply in_seq in N. lia.
Qed.

Lemma e_range h : (0 <= h < 64)%Z -> (0 <= e_of h <= 3)%Z.
Proof.
  intros H. assert (C : forallb (fun h => (0 <=? e_of h) && (e_of h <=? 3))%Z (indices 64) = true) by (vm_compute;
    reflexivity).
  rewrite forallb_forall in C. generalize (C h (in_indices 64 h H)). rewrite andb_true_iff, !Z.leb_le.
  exact (fun x => x).
Qed.

Lemma start_range h : (0 <= h < 63)%Z -> (0 <= unit_start h)%Z /\ (unit_start h + 2 ^ e_of h <= 216)%Z.
Proof.
  intros H. assert (C : forallb (fun h => (0 <=? unit_start h) && (unit_start h + 2 ^ e_of h <=? 216))%Z (indices 63) =
    true) by (vm_compute; reflexivity).
  rewrite forallb_forall in C. generalize (C h (in_indices 63 h H)). rewrite andb_true_iff, !Z.leb_le.
  exact (fun x => x).
Qed.

Section Law.
Variables (l : law) (t : tables).
Hypothesis S : sound l t = true.
Let facts := sound_facts l t S.

Lemma shift_nonnegative : (0 <= shift t <= 50)%Z. Proof. apply (shift_range _ _ facts). Qed.

Lemma first_is_scaled h : (0 <= h < 64)%Z -> first_of t h = (unit_start h * 2 ^ shift t)%Z.
Proof.
  intros H. unfold first_of, unit_start. generalize (e_range h H) shift_nonnegative. intros.
  rewrite Z.pow_add_r by lia. ring.
Qed.

(* The width of a bin. *)
Definition width_bits (h : Z) : Z := e_of h + shift t.
Lemma width_is_scaled h : (0 <= h < 64)%Z -> (2 ^ width_bits h = 2 ^ e_of h * 2 ^ shift t)%Z.
Proof. intros H. unfold width_bits. generalize (e_range h H) shift_nonnegative. intros. apply Z.pow_add_r; lia. Qed.

Lemma magnitude_is h offset : (0 <= h < 64)%Z
  -> magnitude_of t h offset = (first_of t h + Z.land offset (2 ^ width_bits h - 1))%Z.
Proof.
  intros H. unfold magnitude_of, first_of, width_bits. generalize (e_range h H) shift_nonnegative. intros.
  rewrite Z.shiftl_mul_pow2, Z.shiftl_1_l by lia. reflexivity.
Qed.

Lemma lower_range offset k : (0 <= k)%Z -> (0 <= Z.land offset (2 ^ k - 1) < 2 ^ k)%Z.
Proof. intros H. rewrite Z.sub_1_r, <- Z.ones_equiv, Z.land_ones by lia. apply Z.mod_pos_bound, Z.pow_pos_nonneg; lia.
Qed.

(* Every magnitude below the tail has one bin and one offset. *)
Definition tail_start : Z := 216 * 2 ^ shift t.

Lemma tail_start_positive : (0 < tail_start)%Z.
Proof. apply Z.mul_pos_pos; [lia|apply Z.pow_pos_nonneg; generalize shift_nonnegative; lia]. Qed.

Lemma magnitude_range h offset : (0 <= h < 63)%Z -> (0 <= magnitude_of t h offset < tail_start)%Z.
Proof.
  intros H. rewrite magnitude_is by lia. rewrite first_is_scaled by lia.
  generalize (lower_range offset (width_bits h)) (width_is_scaled h) (start_range h H) (e_range h) shift_nonnegative.
  unfold width_bits, tail_start. intros L W B E Q.
  specialize (L ltac:(lia)). specialize (W ltac:(lia)). assert (0 < 2 ^ shift t)%Z by (apply Z.pow_pos_nonneg; lia).
  nia.
Qed.

Lemma place a : (0 <= a < tail_start)%Z -> exists h y, (0 <= h < 63)%Z /\ (0 <= y < 2 ^ width_bits h)%Z
  /\ a = (first_of t h + y)%Z
  /\ forall bin offset, (0 <= bin < 63)%Z ->
     (magnitude_of t bin offset =? a)%Z = ((bin =? h)%Z && (Z.land offset (2 ^ width_bits h - 1) =? y)%Z)%bool.
Proof.
  intros H. assert (P : (0 < 2 ^ shift t)%Z) by (apply Z.pow_pos_nonneg; generalize shift_nonnegative; lia).
  assert (U : (0 <= a / 2 ^ shift t < 216)%Z).
  { split; [apply Z.div_pos; lia|apply Z.div_lt_upper_bound; unfold tail_start in H; lia]. }
  destruct (bins_cover _ U) as [h [B C]]. exists h, (a - first_of t h)%Z.
  generalize (width_is_scaled h ltac:(lia)) (first_is_scaled h ltac:(lia)). intros W F.
  generalize (Z.div_mod a (2 ^ shift t) ltac:(lia)) (Z.mod_pos_bound a (2 ^ shift t) P). intros D M.
  assert (Y : (0 <= a - first_of t h < 2 ^ width_bits h)%Z) by nia.
  repeat split; try lia. intros bin offset I. rewrite magnitude_is by lia.
  destruct (Z.eqb_spec bin h) as [->|N]; simpl.
  - destruct (Z.eqb_spec (Z.land offset (2 ^ width_bits h - 1)) (a - first_of t h)); [apply Z.eqb_eq|apply Z.eqb_neq];
      lia.
  - apply Z.eqb_neq. generalize (lower_range offset (width_bits bin)) (width_is_scaled bin ltac:(lia)) (first_is_scaled
      bin ltac:(lia)).
    intros L W' F'. specialize (L ltac:(unfold width_bits; generalize (e_range bin) shift_nonnegative; lia)).
    destruct (Z_lt_ge_dec bin h) as [G|G].
    + generalize (bins_are_apart bin h I B G). intros A. nia.
    + generalize (bins_are_apart h bin B I ltac:(lia)). intros A. nia.
Qed.

Lemma bin_range b : (0 <= b < 2 ^ 32)%Z -> (0 <= bin_of t b < 64)%Z.
Proof.
  intros H. unfold bin_of. destruct (_ <? _)%Z.
  - rewrite Z.shiftr_div_pow2 by lia. split; [apply Z.div_pos; lia|apply Z.div_lt_upper_bound; lia].
  - apply (lower_range _ 6). lia.
Qed.

(* Exactly W of the 2^32 bin words lead to a bin. *)
Lemma bin_probability h : (0 <= h < 64)%Z
  -> mean 32 (fun b => one (bin_of t b =? h)%Z) = IZR (item (weights t) h) / IZR (2 ^ 32).
Proof.
  intros H. rewrite <- (words_are_weights _ _ facts h H). change 32%nat with (26 + 6)%nat. rewrite mean_split.
  assert (G : forall A, A / IZR (2 ^ 32) = / IZR (2 ^ 26) * (A / IZR (2^ 6))).
  { intros A. change (2 ^ 32)%Z with 4294967296%Z. change (2 ^ 26)%Z with 67108864%Z. change (2^ 6) with 64%Z. field. }
  rewrite G. unfold words_of.
  rewrite <- mean_integers, <- mean_scale. apply mean_ext. intros c C. cbv zeta. change (2^ 6) with 64%Z in C.
  destruct (entry_range _ _ facts c C) as [E1 E2]. set (entry := item (alias t) c) in *.
  assert (T : (0 <= Z.shiftr entry 6)%Z) by (apply Z.shiftr_nonneg; exact E1).
  transitivity (mean 26 (fun f => (if (Z.land entry 63 =? h)%Z then 1 else 0)
    + ((if (c =? h)%Z then 1 else 0) - (if (Z.land entry 63 =? h)%Z then 1 else 0)) * one (f <? Z.shiftr entry 6)%Z)).
  - apply mean_ext. intros f F. change (2^ 26) with (2 ^ 26)%Z in *. unfold bin_of.
    assert (Hc : Z.shiftr (c * 2 ^ 26 + f) 26 = c).
    { rewrite Z.shiftr_div_pow2, Z.add_comm, Z.div_add by lia. rewrite Z.div_small by lia. reflexivity. }
    assert (Hf : Z.land (c * 2 ^ 26 + f) (2 ^ 26 - 1) = f).
    { rewrite Z.sub_1_r, <- Z.ones_equiv, Z.land_ones by lia. rewrite Z.add_comm, Z.mod_add by lia.
      apply Z.mod_small, F. }
    rewrite Hc, Hf. fold entry. unfold one.
    destruct (f <? Z.shiftr entry 6)%Z, (c =? h)%Z, (Z.land entry 63 =? h)%Z; ring.
  - rewrite mean_plus, mean_const, mean_scale, mean_below by (change (2^ 26) with (2 ^ 26)%Z; lia).
    change (2^ 26) with (2 ^ 26)%Z.
    destruct (c =? h)%Z, (Z.land entry 63 =? h)%Z; rewrite ?Z.add_0_r, ?Z.add_0_l, ?plus_IZR, ?minus_IZR;
      change (2 ^ 26)%Z with 67108864%Z; field.
Qed.

Lemma density_falls a b : (0 <= a <= b)%Z -> density l b <= density l a.
Proof.
  intros H. unfold density. assert (D : 0 < IZR (divisor l)) by (apply IZR_lt, divisor_positive,
    (numerator_positive _ _ facts)).
  apply Raux.exp_le, Ropp_le_contravar, Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, D|]. apply IZR_le.
  generalize (denominator_positive _ _ facts). intros. unfold dividend.
  assert (0 <= a * denominator l <= b * denominator l)%Z by nia.
  destruct (gaussian l); [apply Z.pow_le_mono_l|]; lia.
Qed.

(* What m more bits make of a trial: one that the kernel leaves open is accepted when its uniform number's prefix of 63
   + m bits is certain to be. *)
Definition settled (fused : bool) (m : nat) (bin offset accept more : Z) : option Z :=
  match trial fused t bin offset accept with
  | (Accepted, value) => Some value
  | (Undecided, value) =>
      let h := bin_of t bin in
      if Rle_dec ((IZR (Z.shiftr accept 1 * 2^ m + more) + 1) * IZR (item (weights t) h))
                 (right_side l t (63 + Z.of_nat m) (copies_of t h (Z.abs value)) (Z.abs value))
      then Some value else None
  | _ => None
  end.

Definition is_value (x : Z) (o : option Z) : bool := match o with Some v => (v =? x)%Z | None => false end.

(* Which trials count for value x by their sign. *)
Definition sign_counts (x accept : Z) : bool :=
  match signs t with
  | One => true
  | Folded => (x =? 0)%Z || Bool.eqb (Z.odd accept) (x <? 0)%Z
  | Two => Bool.eqb (Z.odd accept) (x <? 0)%Z
  end.

Definition accepts (m : nat) (h a u : Z) : bool :=
  if Rle_dec ((IZR u + 1) * IZR (item (weights t) h)) (right_side l t (63 + Z.of_nat m) (copies_of t h a) a) then true
    else false.

Lemma right_side_bits m e a : right_side l t (63 + Z.of_nat m) e a = right_side l t 63 e a * IZR (2^ m).
Proof.
  unfold right_side. change (2^ m) with (Zpower radix2 (Z.of_nat m)). rewrite IZR_Zpower by lia.
  replace (e + (63 + Z.of_nat m))%Z with (e + 63 + Z.of_nat m)%Z by ring. rewrite bpow_plus. ring.
Qed.

Lemma settled_is fused m b off acc more x h y :
  (0 <= b < 2 ^ 32)%Z -> (0 <= acc < 2 ^ 64)%Z -> (0 <= more < 2^ m)%Z ->
  (match signs t with One => 0 <= x | _ => True end)%Z -> (0 <= h < 63)%Z -> (0 <= y < 2 ^ width_bits h)%Z
    -> Z.abs x = (first_of t h + y)%Z ->
  (forall bin offset, (0 <= bin < 63)%Z ->
     (magnitude_of t bin offset =? Z.abs x)%Z = ((bin =? h)%Z && (Z.land offset (2 ^ width_bits h - 1) =? y)%Z)%bool) ->
  is_value x (settled fused m b off acc more)
  = ((bin_of t b =? h)%Z && (Z.land off (2 ^ width_bits h - 1) =? y)%Z && sign_counts x acc
     && accepts m h (Z.abs x) (Z.shiftr acc 1 * 2^ m + more)%Z)%bool.
Proof.
  intros Hb Ha Hm Hx Hh Hy Habs Hplace.
  generalize (bin_range b Hb). intros Bin. unfold settled, trial, is_value. cbv zeta.
  destruct (Z.eqb_spec (bin_of t b) 63) as [T|N].
  { rewrite T. assert ((63 =? h)%Z = false) as -> by (apply Z.eqb_neq; lia). reflexivity. }
  assert (Bin' : (0 <= bin_of t b < 63)%Z) by lia. set (bin := bin_of t b) in *.
  rewrite <- (Hplace bin off Bin'). generalize (magnitude_range bin off Bin'). set (a := magnitude_of t bin off).
  intros A.
  assert (A60 : (0 <= a < 2 ^ 60)%Z).
  { generalize shift_nonnegative. unfold tail_start in A. intros Q.
    assert (2 ^ shift t <= 2 ^ 50)%Z by (apply Z.pow_le_mono_r; lia). lia. }
  set (u := Z.shiftr acc 1). assert (U : (0 <= u < 2 ^ 63)%Z).
  { unfold u. rewrite Z.shiftr_div_pow2 by lia. split; [apply Z.div_pos; lia|apply Z.div_lt_upper_bound; lia]. }
  set (e := copies_of t bin a). assert (E : (0 <= e <= 4)%Z).
  { unfold e, copies_of. generalize (e_range bin ltac:(lia)). destruct (signs t); try destruct (a <? 1)%Z; lia. }
  generalize (weight_range _ _ facts bin ltac:(lia)). set (W := item (weights t) bin). intros HW.
  generalize (judge_is_right l t S fused a e W u A60 E HW U). destruct (judge fused t a e W u) as [below above].
  intros [HB HA].
  set (negative := match signs t with One => false | _ => Z.odd acc end). set (v := if negative then (- a)%Z else a).
  assert (V : Z.abs v = a) by (unfold v; destruct negative; lia). rewrite V. fold e.
  (* What further bits say. *)
  set (thr := accepts m bin a (u * 2^ m + more)%Z).
  assert (P : (1 <= 2^ m)%Z) by (generalize (pow_positive m); lia).
  assert (Q : accepts m bin a (u * 2^ m + more)%Z = true <-> (IZR (u * 2^ m + more) + 1) * IZR W <= right_side l t 63 e
    a * IZR (2^ m)).
  { unfold accepts. fold W e. rewrite right_side_bits. destruct (Rle_dec _ _); split; auto; discriminate. }
  assert (PM : 1 <= IZR (2^ m)) by (apply IZR_le; lia). assert (WM : 1 <= IZR W) by (apply IZR_le; lia).
  assert (UM : 0 <= IZR u) by (apply IZR_le; lia). assert (MM : 0 <= IZR more) by (apply IZR_le; lia).
  assert (MP : IZR more + 1 <= IZR (2^ m)) by (rewrite <- plus_IZR; apply IZR_le; lia).
  assert (Qb : below = true -> thr = true).
  { intros H. apply Q. specialize (HB H). rewrite plus_IZR, mult_IZR.
    apply Rle_trans with ((IZR u + 1) * IZR W * IZR (2^ m)); [|apply Rmult_le_compat_r; lra].
    replace ((IZR u + 1) * IZR W * IZR (2^ m)) with ((IZR u * IZR (2^ m) + IZR (2^ m)) * IZR W) by ring.
    apply Rmult_le_compat_r; lra. }
  assert (Qa : above = true -> thr = false).
  { intros H. specialize (HA H). unfold thr. apply not_true_iff_false. intros X. apply Q in X.
    rewrite plus_IZR, mult_IZR in X.
    assert (right_side l t 63 e a * IZR (2^ m) <= IZR u * IZR W * IZR (2^ m)) by (apply Rmult_le_compat_r; lra).
    assert (0 < (IZR more + 1) * IZR W) by (apply Rmult_lt_0_compat; lra). lra. }
  assert (Qu : (if Rle_dec ((IZR (u * 2^ m + more) + 1) * IZR W) (right_side l t (63 + Z.of_nat m) e a) then true else
    false) = thr) by reflexivity.
  (* The bin of x is that of the trial wherever the magnitude is that of x. *)
  assert (K : (a =? Z.abs x)%Z = true -> accepts m h (Z.abs x) (u * 2^ m + more)%Z = thr).
  { intros H. unfold thr. generalize H. unfold a at 1. rewrite (Hplace bin off Bin'). rewrite andb_true_iff.
    intros [<-%Z.eqb_eq _].
    apply Z.eqb_eq in H. rewrite H. reflexivity. }
  set (zero := match signs t with Folded => false | _ => negative && (a =? 0)%Z end).
  assert (R : (match (if zero then Rejected else if below then Accepted else if above then Rejected else Undecided,
    v) with
      | (Accepted, value) => Some value
      | (Undecided, value) => if Rle_dec ((IZR (u * 2^ m + more) + 1) * IZR W) (right_side l t (63 + Z.of_nat m) e a)
        then Some value else None
      | _ => None end) = if negb zero && thr then Some v else None).
  { destruct zero; [reflexivity|]. destruct below; [rewrite Qb by reflexivity; reflexivity|].
    destruct above; [rewrite Qa by reflexivity; reflexivity|]. rewrite <- Qu. destruct (Rle_dec _ _); reflexivity. }
  fold a W e. change (Z.shiftr acc 1) with u. fold negative. fold v. fold zero.
  match goal with |- match ?X with _ => _ end = _ => replace X with (if negb zero && thr then Some v else None) by
    (symmetry; exact R) end.
  clear R. destruct (Z.eqb_spec a (Z.abs x)) as [Ea|Na]; simpl.
  - rewrite K by reflexivity. destruct thr; [|rewrite !andb_false_r; reflexivity].
    rewrite !andb_true_r. unfold zero, v, negative, sign_counts. rewrite Ea.
    destruct (signs t); simpl.
    + destruct (Z.eqb_spec (Z.abs x) x); [reflexivity|lia].
    + destruct (Z.odd acc), (Z.eqb_spec x 0), (Z.ltb_spec x 0); simpl;
        try destruct (Z.eqb_spec (- Z.abs x) x); try destruct (Z.eqb_spec (Z.abs x) x); try reflexivity; lia.
    + destruct (Z.odd acc), (Z.eqb_spec (Z.abs x) 0), (Z.ltb_spec x 0); simpl;
        try destruct (Z.eqb_spec (- Z.abs x) x); try destruct (Z.eqb_spec (Z.abs x) x); try reflexivity; lia.
  - destruct (negb zero && thr); [|reflexivity]. apply Z.eqb_neq. lia.
Qed.

Definition offset_bits : nat := if (shift t <? 30)%Z then 32 else 64.

(* The probability that a trial gives x when 63 + m bits of its uniform number are looked at. *)
Definition probability (fused : bool) (m : nat) (x : Z) : R :=
  mean 32 (fun bin => mean offset_bits (fun offset => mean 64 (fun accept => mean m (fun more =>
    one (is_value x (settled fused m bin offset accept more)))))).

(* What it comes to is this times f(|x|). *)
Definition factor : R := IZR (amplitude t) / IZR (2 ^ (32 + shift t)) * match signs t with Two => 1/2 | _ => 1 end.

Lemma one_and a b : one (a && b) = one a * one b.
Proof. destruct a, b; simpl; ring. Qed.

Lemma copies_agree h a y : (0 <= h < 63)%Z -> (0 <= y < 2 ^ width_bits h)%Z -> a = (first_of t h + y)%Z ->
  bpow radix2 (copies_of t h a) = IZR (copies t h).
Proof.
  intros H Y A. assert (2 ^ copies_of t h a = copies t h)%Z as <-.
  { unfold copies, copies_of. generalize (folded_without_shift _ _ facts). destruct (signs t); try reflexivity.
    intros Z0. specialize (Z0 eq_refl).
    assert (first_of t h = unit_start h) as F by (rewrite first_is_scaled, Z0 by lia; lia).
    destruct (Z.eqb_spec h 0) as [->|N].
    - unfold width_bits in Y. rewrite Z0 in Y. change (e_of 0) with 0%Z in Y. change (unit_start 0) with 0%Z in F.
      destruct (Z.ltb_spec a 1); [reflexivity|]. simpl in Y. lia.
    - generalize (bins_are_apart 0 h ltac:(lia) H ltac:(lia)). change (unit_start 0 + 2 ^ e_of 0)%Z with 1%Z. intros U.
      destruct (Z.ltb_spec a 1); [lia|reflexivity]. }
  change 2%Z with (radix_val radix2). rewrite IZR_Zpower; [reflexivity|].
  unfold copies_of. generalize (e_range h). destruct (signs t); try destruct (a <? 1)%Z; lia.
Qed.

Theorem trial_law fused m x : (Z.abs x < tail_start)%Z -> (match signs t with One => 0 <= x | _ => True end)%Z ->
  factor * density l (Z.abs x) - / IZR (2^ (63 + m)) <= probability fused m x <= factor * density l (Z.abs x).
Proof.
  intros Hx Hs. destruct (place (Z.abs x) ltac:(lia)) as [h [y [Hh [Hy [Ha Hp]]]]].
  generalize (weight_range _ _ facts h ltac:(lia)). set (W := item (weights t) h). intros HW.
  assert (W1 : 1 <= IZR W) by (apply IZR_le; lia).
  set (n := (63 + m)%nat). set (R' := right_side l t (63 + Z.of_nat m) (copies_of t h (Z.abs x)) (Z.abs x)).
  set (K := Zfloor (R' / IZR W)).
  assert (N1 : 1 <= IZR (2^ n)) by (apply IZR_le; generalize (pow_positive n); lia).
  (* R of n bits. *)
  assert (RV : R' = IZR (amplitude t) * IZR (copies t h) * density l (Z.abs x) * IZR (2^ n)).
  { unfold R', right_side. rewrite bpow_plus, (copies_agree h (Z.abs x) y Hh Hy Ha).
    change (2^ n) with (Zpower radix2 (Z.of_nat n)).
    rewrite IZR_Zpower by lia. replace (63 + Z.of_nat m)%Z with (Z.of_nat n) by (unfold n; lia). ring. }
  assert (D0 : 0 < density l (Z.abs x)) by apply exp_pos.
  assert (C1 : 1 <= IZR (amplitude t)) by (apply IZR_le; generalize (amplitude_range _ _ facts); lia).
  assert (CP : 0 < IZR (copies t h)) by (rewrite <- (copies_agree h (Z.abs x) y Hh Hy Ha); apply bpow_gt_0).
  assert (RB : 0 <= R' <= IZR (2^ n) * IZR W).
  { rewrite RV. split; [repeat apply Rmult_le_pos; lra|]. rewrite (Rmult_comm (IZR (2^ n))).
    apply Rmult_le_compat_r; [lra|].
    eapply Rle_trans; [|apply (weights_have_room _ _ facts h Hh)]. rewrite mult_IZR.
    apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|].
    apply density_falls. split; [|lia]. rewrite first_is_scaled by lia. generalize (start_range h Hh). intros [A _].
    apply Z.mul_nonneg_nonneg; [exact A|apply Z.pow_nonneg; lia]. }
  assert (KB : (0 <= K <= 2^ n)%Z).
  { unfold K. split; [apply Zfloor_lub; unfold Rdiv; apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]|].
    apply le_IZR. eapply Rle_trans; [apply Zfloor_lb|]. apply Rmult_le_reg_r with (IZR W); [lra|]. unfold Rdiv.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. lra. }
  assert (Ac : forall v, accepts m h (Z.abs x) v = (v <? K)%Z).
  { intros v. unfold accepts. fold W R'. assert (Q : (IZR v + 1) * IZR W <= R' <-> (v < K)%Z).
    { split; intros H.
      - assert (v + 1 <= K)%Z; [|lia]. apply Zfloor_lub. rewrite plus_IZR. apply Rmult_le_reg_r with (IZR W); [lra|].
        unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. exact H.
      - assert (IZR (v + 1) <= R' / IZR W) by (eapply Rle_trans; [apply IZR_le|apply Zfloor_lb]; unfold K in H; lia).
        rewrite plus_IZR in H0. apply Rmult_le_compat_r with (r := IZR W) in H0; [|lra]. unfold Rdiv in H0.
        rewrite Rmult_assoc, Rinv_l, Rmult_1_r in H0 by lra. exact H0. }
    destruct (Rle_dec _ _) as [L|L]; symmetry; [apply Z.ltb_lt, Q, L|apply Z.ltb_ge; apply Z.nlt_ge; intros V;
      apply L, Q, V]. }
  (* The four factors. *)
  set (sigma := match signs t with One => 1 | Folded => if (x =? 0)%Z then 1 else 1/2 | Two => 1/2 end).
  assert (P : probability fused m x = IZR W / IZR (2 ^ 32) * (1 / IZR (2 ^ width_bits h) * (sigma * (IZR K / IZR (2^
    n))))).
  { unfold probability. generalize (e_range h ltac:(lia)) shift_nonnegative. intros E0 S0.
    assert (O : mean offset_bits (fun off => one (Z.land off (2 ^ width_bits h - 1) =? y)%Z) = 1 / IZR (2 ^ width_bits
      h)).
    { rewrite <- (Z2Nat.id (width_bits h)) by (unfold width_bits; lia).
      replace offset_bits with (Z.to_nat (width_bits h) + (offset_bits - Z.to_nat (width_bits h)))%nat.
      - apply mean_lower. rewrite Z2Nat.id by (unfold width_bits; lia). exact Hy.
      - unfold offset_bits, width_bits. destruct (Z.ltb_spec (shift t) 30); lia. }
    assert (A : mean 64 (fun acc => mean m (fun more => one (sign_counts x acc) * one (accepts m h (Z.abs x) (Z.shiftr
      acc 1 * 2^ m + more)%Z)))
      = sigma * (IZR K / IZR (2^ n))).
    { change 64%nat with (1 + 63)%nat. rewrite mean_split. rewrite <- (mean_below n K KB), <- mean_scale. unfold n at 1.
      replace (63 + m)%nat with (m + 63)%nat by lia. rewrite mean_split. apply mean_ext. intros u U. cbn [mean].
      assert (S0' : forall b, (0 <= b <= 1)%Z -> Z.shiftr (u * 2^ 1 + b) 1 = u).
      { intros b B. rewrite Z.shiftr_div_pow2 by lia. change (2^ 1) with 2%Z. change (2 ^ 1)%Z with 2%Z.
        Z.to_euclidean_division_equations. lia. }
      rewrite !S0' by lia. rewrite (mean_scale m (one (sign_counts x (u * 2^ 1 + 2 * 0)))),
        (mean_scale m (one (sign_counts x (u * 2^ 1 + (2 * 0 + 1))))).
      rewrite (mean_scale m sigma).
      rewrite (mean_ext m (fun more => one (accepts m h (Z.abs x) (u * 2^ m + more))) (fun more => one (u * 2^ m + more
        <? K)%Z)) by (intros; rewrite Ac; reflexivity).
      unfold sign_counts, sigma. change (2^ 1) with 2%Z.
      assert (O0 : Z.odd (u * 2 + 2 * 0) = false) by (replace (u * 2 + 2 * 0)%Z with (0 + 2 * u)%Z by ring;
        rewrite Z.odd_add_mul_2; reflexivity).
      assert (O1 : Z.odd (u * 2 + (2 * 0 + 1)) = true) by (replace (u * 2 + (2 * 0 + 1))%Z with (1 + 2 * u)%Z by ring;
        rewrite Z.odd_add_mul_2; reflexivity).
      rewrite O0, O1. destruct (signs t), (Z.eqb_spec x 0), (Z.ltb_spec x 0); simpl; try lia; lra. }
    unfold W. rewrite <- (bin_probability h ltac:(lia)), <- mean_scale_right. apply mean_ext. intros b Hb.
    change (2^ 32) with (2 ^ 32)%Z in Hb.
    rewrite <- O, <- mean_scale_right, <- mean_scale. apply mean_ext. intros off _.
    rewrite <- A, <- !mean_scale. apply mean_ext. intros acc Hacc. change (2^ 64) with (2 ^ 64)%Z in Hacc.
    rewrite <- !mean_scale. apply mean_ext. intros more Hmore.
    rewrite (settled_is fused m b off acc more x h y Hb Hacc Hmore Hs Hh Hy Ha Hp). rewrite !one_and. ring. }
  rewrite P. clear P Ac.
  assert (Pow : IZR (2 ^ (32 + shift t)) * IZR (2 ^ e_of h) = IZR (2 ^ 32) * IZR (2 ^ width_bits h)).
  { rewrite <- !mult_IZR, width_is_scaled by lia. generalize shift_nonnegative. intros. rewrite Z.pow_add_r by lia.
    f_equal. ring. }
  assert (Pos : forall k, (0 <= k)%Z -> 0 < IZR (2 ^ k)) by (intros; apply IZR_lt, Z.pow_pos_nonneg; lia).
  generalize (e_range h ltac:(lia)) shift_nonnegative. intros E0 S0.
  assert (P1 := Pos (32 + shift t)%Z ltac:(lia)). assert (P2 := Pos (e_of h) ltac:(lia)).
  assert (P3 := Pos (width_bits h) ltac:(unfold width_bits; lia)).
  assert (P4 := Pos 32%Z ltac:(lia)).
  assert (Sig : sigma * IZR (copies t h) = IZR (2 ^ e_of h) * match signs t with Two => 1/2 | _ => 1 end).
  { unfold sigma, copies. generalize (folded_without_shift _ _ facts). destruct (signs t); intros Z0; try ring.
    specialize (Z0 eq_refl). assert (F : first_of t h = unit_start h) by (rewrite first_is_scaled, Z0 by lia; lia).
    destruct (Z.eqb_spec h 0) as [->|N].
    - unfold width_bits in Hy. rewrite Z0 in Hy. change (e_of 0) with 0%Z in Hy. change (unit_start 0) with 0%Z in F.
      simpl in Hy.
      assert (x = 0)%Z as -> by lia. simpl. ring.
    - generalize (bins_are_apart 0 h ltac:(lia) Hh ltac:(lia)). change (unit_start 0 + 2 ^ e_of 0)%Z with 1%Z. intros U.
      destruct (Z.eqb_spec x 0); [lia|]. rewrite Z.pow_add_r, mult_IZR by lia. simpl (2 ^ 1)%Z. lra. }
  assert (Law : factor * density l (Z.abs x) = IZR W / IZR (2 ^ 32) * (1 / IZR (2 ^ width_bits h) * (sigma * (R' / IZR
    W / IZR (2^ n))))).
  { rewrite RV. unfold factor.
    replace (IZR W / IZR (2 ^ 32) * (1 / IZR (2 ^ width_bits h) * (sigma * (IZR (amplitude t) * IZR (copies t h) *
      density l (Z.abs x) * IZR (2^ n) / IZR W / IZR (2^ n)))))
      with (IZR (amplitude t) * density l (Z.abs x) * (sigma * IZR (copies t h)) / (IZR (2 ^ 32) * IZR (2 ^ width_bits
        h))) by (field; repeat split; lra).
    rewrite Sig, <- Pow. field. split; lra. }
  rewrite Law. generalize (Zfloor_lb (R' / IZR W)) (Zfloor_ub (R' / IZR W)). fold K. intros L U.
  assert (Sg : 0 <= sigma <= 1) by (unfold sigma; destruct (signs t); try destruct (x =? 0)%Z; lra).
  set (q := IZR W / IZR (2 ^ 32) * (1 / IZR (2 ^ width_bits h) * sigma)).
  assert (Q : 0 <= q <= 1).
  { unfold q. assert (0 <= IZR W / IZR (2 ^ 32) <= 1).
    { split; [apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat, P4]|].
      apply Rmult_le_reg_r with (IZR (2 ^ 32)); [lra|]. unfold Rdiv.
      rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra. apply IZR_le. lia. }
    assert (0 <= 1 / IZR (2 ^ width_bits h) <= 1).
    { split; [apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat, P3]|].
      apply Rmult_le_reg_r with (IZR (2 ^ width_bits h)); [lra|]. unfold Rdiv.
      rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra. apply IZR_le. lia. }
    split; [repeat apply Rmult_le_pos; lra|]. apply Rle_trans with (1 * (1 * 1)); [|lra].
    repeat apply Rmult_le_compat; try lra; apply Rmult_le_pos; lra. }
  assert (I1 : 0 < / IZR (2^ n)) by (apply Rinv_0_lt_compat; lra).
  replace (IZR W / IZR (2 ^ 32) * (1 / IZR (2 ^ width_bits h) * (sigma * (IZR K / IZR (2^ n))))) with (q * (IZR K * /
    IZR (2^ n))) by (unfold q, Rdiv; ring).
  replace (IZR W / IZR (2 ^ 32) * (1 / IZR (2 ^ width_bits h) * (sigma * (R' / IZR W / IZR (2^ n))))) with (q * (R' /
    IZR W * / IZR (2^ n))) by (unfold q, Rdiv; ring).
  set (i := / IZR (2^ n)) in *. set (r := R' / IZR W) in *.
  assert (q * (r * i) - q * (IZR K * i) = q * ((r - IZR K) * i)) by ring.
  assert (0 <= (r - IZR K) * i <= i) by (split; [apply Rmult_le_pos; lra|]; apply Rle_trans with (1 * i);
    [apply Rmult_le_compat_r; lra|lra]).
  assert (0 <= q * ((r - IZR K) * i) <= i) by (split; [apply Rmult_le_pos; lra|]; apply Rle_trans with (1 * i);
    [apply Rmult_le_compat; lra|lra]).
  lra.
Qed.
End Law.
