(* The staircase law, which its quotients give, and a decision by certified intervals whether tables have its counts. *)
From Coq Require Import Reals ZArith List Bool Lia Lra.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Core.
From Dpnoise Require Import Decide Model Words Sound Pages.
Import ListNotations.
Open Scope R_scope.

(* A law with epsilon = n / d: the magnitude of x falls by e^-epsilon at inner, inner + width, inner + 2 width, ... *)
Record staircase := Staircase { epsilon : Z * Z; width : nat; inner : nat }.
Definition is_staircase (l : staircase) : bool :=
  (0 <? fst (epsilon l))%Z && (0 <? snd (epsilon l))%Z && (1 <=? inner l)%nat && (inner l <=? width l)%nat.

Section Law.
Variable l : staircase.
Hypothesis Ok : is_staircase l = true.
Notation w := (width l).
Notation i := (inner l).

Definition fall : R := exp (- (IZR (fst (epsilon l)) / IZR (snd (epsilon l)))).
Definition steps (x : nat) : nat := ((x + w - i) / w)%nat.
Definition mass (x : nat) : R := (if (x =? 0)%nat then 1 else 2) * fall ^ steps x.

(* All masses from x on, for x > 0, and the sum of all. *)
Definition masses_from (x : nat) : R :=
  2 * (fall ^ steps x * INR (w - (x + w - i) mod w) + INR w * (fall ^ S (steps x) / (1 - fall))).
Definition all_masses : R := 1 + masses_from 1.
Definition staircase_law (x : nat) : R := mass x / all_masses.

Lemma widths : (1 <= i <= w)%nat.
Proof. unfold is_staircase in Ok. rewrite !andb_true_iff, !Nat.leb_le in Ok. tauto. Qed.

Lemma fall_range : 0 < fall < 1.
Proof.
  unfold is_staircase in Ok. rewrite !andb_true_iff, !Z.ltb_lt in Ok. destruct Ok as [[[N D] _] _].
  apply IZR_lt in N, D. unfold fall. split; [apply exp_pos|]. rewrite <- exp_0. apply exp_increasing.
  assert (0 < IZR (fst (epsilon l)) / IZR (snd (epsilon l))) by (apply Rdiv_lt_0_compat; assumption). lra.
Qed.

(* The law, by the probabilities of one sign, has the quotients of pages.md. *)
Theorem quotients_of_the_staircase x : (0 < x)%nat ->
  let of_sign y := staircase_law y * (if (y =? 0)%nat then 1 else 1/2) in
  of_sign x = of_sign (x - 1)%nat * (if (x mod w =? i mod w)%nat then fall else 1).
Proof.
  intros X of_sign. assert (Power : forall y, of_sign y = fall ^ steps y / all_masses)
    by (intros y; unfold of_sign, staircase_law, mass, Rdiv; generalize (/ all_masses); destruct (y =? 0)%nat; intros;
      field).
  rewrite !Power. unfold Rdiv. rewrite (Rmult_comm _ (/ _)), (Rmult_comm (fall ^ steps (x - 1))), Rmult_assoc. f_equal.
  clear of_sign Power.
  generalize widths. intros W. unfold steps.
  assert (E : (x mod w = i mod w <-> (x + w - i) mod w = 0)%nat).
  { generalize (Nat.div_mod x w ltac:(lia)) (Nat.div_mod i w ltac:(lia)) (Nat.div_mod (x + w - i) w ltac:(lia)).
    set (b := (i / w)%nat). set (s := ((x + w - i) / w)%nat). intros A B D. split; intros H.
    - replace (x + w - i)%nat with ((x / w + 1 - b) * w)%nat; [apply Nat.mod_mul; lia|].
      assert (b <= 1)%nat by (apply Nat.div_le_upper_bound; lia). rewrite H in A.
      destruct b as [|[|b]]; [| |lia]; nia.
    - destruct s as [|s]; [lia|]. replace x with (i + s * w)%nat by lia. apply Nat.mod_add. lia. }
  generalize (Nat.div_mod (x + w - i) w ltac:(lia)) (Nat.mod_upper_bound (x + w - i) w ltac:(lia)). intros A B.
  destruct (Nat.eqb_spec (x mod w) (i mod w)) as [H|H].
  - apply E in H. rewrite H in A. destruct ((x + w - i) / w)%nat as [|s]; [lia|].
    rewrite <- (Nat.div_unique (x - 1 + w - i) w s (w - 1)) by lia. simpl. ring.
  - rewrite Rmult_1_r. f_equal. apply (Nat.div_unique _ _ _ ((x + w - i) mod w - 1)); [lia|].
    assert ((x + w - i) mod w <> 0)%nat by (intros Z; apply H, E, Z). lia.
Qed.

Lemma masses_follow x : (0 < x)%nat -> masses_from x = mass x + masses_from (S x).
Proof.
  intros X. generalize widths fall_range. intros W F. unfold masses_from, mass.
  rewrite (proj2 (Nat.eqb_neq x 0)) by lia. unfold steps.
  generalize (Nat.div_mod (x + w - i) w ltac:(lia)) (Nat.mod_upper_bound (x + w - i) w ltac:(lia)).
  set (s := ((x + w - i) / w)%nat). set (r := ((x + w - i) mod w)%nat). intros D M.
  destruct (Nat.eq_dec (S r) w) as [E|E].
  - rewrite <- (Nat.div_unique (S x + w - i) w (S s) 0), <- (Nat.mod_unique (S x + w - i) w (S s) 0) by nia.
    rewrite Nat.sub_0_r. replace (w - r)%nat with 1%nat by lia. simpl. field. lra.
  - rewrite <- (Nat.div_unique (S x + w - i) w s (S r)), <- (Nat.mod_unique (S x + w - i) w s (S r)) by lia.
    replace (w - r)%nat with (S (w - S r)) by lia. rewrite S_INR. ring.
Qed.

Lemma masses_vanish : is_lim_seq masses_from 0.
Proof.
  generalize widths fall_range. intros W F.
  assert (P : is_lim_seq (fun x => fall ^ steps x) 0).
  { apply (is_lim_seq_subseq (fun k => fall ^ k) 0 steps); [|apply is_lim_seq_geom; rewrite Rabs_pos_eq; lra].
    intros P [n H]. exists (w * n)%nat. intros x X. apply H. unfold steps. apply Nat.div_le_lower_bound; nia. }
  apply (is_lim_seq_le_le (fun _ => 0) _ (fun x => fall ^ steps x * (2 * INR w * (1 + fall / (1 - fall))))).
  - intros x. unfold masses_from. assert (0 < fall ^ steps x) by (apply pow_lt; lra).
    assert (Q : 0 < fall / (1 - fall)) by (apply Rdiv_lt_0_compat; lra).
    assert (I : 0 <= INR (w - (x + w - i) mod w) <= INR w) by (split; [apply pos_INR|apply le_INR; lia]).
    replace (fall ^ S (steps x) / (1 - fall)) with (fall ^ steps x * (fall / (1 - fall))) by (simpl; field; lra).
    assert (0 <= INR w * (fall / (1 - fall))) by (apply Rmult_le_pos; lra). split; nra.
  - apply is_lim_seq_const.
  - replace (Finite 0) with (Finite (0 * (2 * INR w * (1 + fall / (1 - fall))))) by (f_equal; ring).
    apply is_lim_seq_mult'; [exact P|apply is_lim_seq_const].
Qed.

Lemma masses_are_positive x : 0 < masses_from x.
Proof.
  generalize widths fall_range. intros W F. unfold masses_from. assert (0 < fall ^ steps x) by (apply pow_lt; lra).
  assert (0 < fall ^ S (steps x) / (1 - fall)) by (apply Rdiv_lt_0_compat; [apply pow_lt|]; lra).
  assert (1 <= INR w) by (apply (le_INR 1); lia). generalize (pos_INR (w - (x + w - i) mod w)). intros.
  assert (0 < INR w * (fall ^ S (steps x) / (1 - fall))) by (apply Rmult_lt_0_compat; lra).
  assert (0 <= fall ^ steps x * INR (w - (x + w - i) mod w)) by (apply Rmult_le_pos; lra). lra.
Qed.

Definition from (x : nat) : R := if (x =? 0)%nat then all_masses else masses_from x.

Lemma from_follows x : from x = mass x + from (S x).
Proof.
  destruct x as [|x]; [|apply masses_follow; lia]. unfold from, all_masses, mass. cbn [Nat.eqb].
  generalize widths. intros W. unfold steps at 1. rewrite Nat.add_0_l, Nat.div_small by lia. simpl. ring.
Qed.

Lemma series_from x : is_series (fun more => staircase_law (x + more)) (from x / all_masses).
Proof.
  assert (A : 0 < all_masses) by (unfold all_masses; generalize (masses_are_positive 1); lra).
  assert (Sum : forall n, sum_f_R0 (fun more => staircase_law (x + more)) n = (from x - from (x + S n)) / all_masses).
  { intros n. induction n as [|n IH]; cbn [sum_f_R0].
    - rewrite Nat.add_0_r, Nat.add_1_r, (from_follows x). unfold staircase_law. field. lra.
    - rewrite IH, (from_follows (x + S n)), <- (plus_n_Sm x (S n)). unfold staircase_law. field. lra. }
  change (is_lim_seq (sum_n (fun more => staircase_law (x + more))) (from x / all_masses)).
  apply (is_lim_seq_ext (fun n => (from x - from (x + S n)) / all_masses)); [intros n; exact (eq_sym (eq_trans
    (sum_n_Reals _ n) (Sum n)))|].
  replace (Finite (from x / all_masses)) with (Finite ((from x - 0) / all_masses)) by (f_equal; f_equal; ring).
  apply is_lim_seq_mult'; [|apply is_lim_seq_const]. apply is_lim_seq_minus'; [apply is_lim_seq_const|].
  apply (is_lim_seq_ext (fun n => masses_from (n + S x))).
  - intros n. unfold from. replace (x + S n)%nat with (n + S x)%nat by lia.
    rewrite (proj2 (Nat.eqb_neq (n + S x) 0)) by lia. reflexivity.
  - apply (is_lim_seq_incr_n masses_from (S x)), masses_vanish.
Qed.

Theorem staircase_is_a_law : (forall x, 0 < staircase_law x) /\ is_series staircase_law 1.
Proof.
  assert (A : 0 < all_masses) by (unfold all_masses; generalize (masses_are_positive 1); lra). split.
  - intros x. apply Rdiv_lt_0_compat; [|exact A]. apply Rmult_lt_0_compat; [destruct (x =? 0)%nat; lra|].
    apply pow_lt, fall_range.
  - replace 1 with (from 0 / all_masses) by (unfold from; cbn [Nat.eqb]; field; lra). apply (series_from 0).
Qed.

Lemma at_least_of_the_staircase x : at_least staircase_law x = from x / all_masses.
Proof. apply is_series_unique, series_from. Qed.

(* The same as terms that Coq computes. *)
Definition power_term (k : nat) : term :=
  Exp (Sub (Whole 0) (Div (Whole (Z.of_nat k * fst (epsilon l))) (Whole (snd (epsilon l))))).
Definition mass_term (x : nat) : term := Mul (Whole (if (x =? 0)%nat then 1 else 2)) (power_term (steps x)).
Definition masses_term (x : nat) : term :=
  Mul (Whole 2) (Add (Mul (power_term (steps x)) (Whole (Z.of_nat (w - (x + w - i) mod w))))
    (Mul (Whole (Z.of_nat w)) (Div (power_term (S (steps x))) (Sub (Whole 1) (power_term 1))))).
Definition from_term (x : nat) : term :=
  if (x =? 0)%nat then Add (Whole 1) (masses_term 1) else masses_term x.

Lemma power_is k : denote (power_term k) = fall ^ k.
Proof.
  unfold fall. rewrite Values.exp_pow. unfold power_term. cbn [denote]. f_equal. rewrite mult_IZR, <- INR_IZR_INZ.
  unfold Rdiv. ring.
Qed.

Lemma mass_is x : denote (mass_term x) = mass x.
Proof. unfold mass_term, mass. cbn [denote]. rewrite power_is. destruct (x =? 0)%nat; reflexivity. Qed.

Lemma masses_are x : denote (masses_term x) = masses_from x.
Proof.
  unfold masses_term, masses_from.
  change (2 * (denote (power_term (steps x)) * IZR (Z.of_nat (w - (x + w - i) mod w))
    + IZR (Z.of_nat w) * (denote (power_term (S (steps x))) / (1 - denote (power_term 1)))) = masses_from x).
  rewrite !power_is, <- !INR_IZR_INZ, pow_1. reflexivity.
Qed.

Lemma from_is x : denote (from_term x) = from x.
Proof.
  unfold from_term, from, all_masses. destruct (x =? 0)%nat; [|apply masses_are].
  change (1 + denote (masses_term 1) = 1 + masses_from 1). rewrite masses_are. reflexivity.
Qed.

(* Whether a count is that of a probability whose words have these bounds; a doubtful one is not. *)
Definition counted (scaled : Bounds.type) (count : Z) : bool :=
  ((count =? 0)%Z || (1 <=? count)%Z && below (bounds (Div (Whole (2 * count + 1)) (Whole 2))) scaled)
  && below scaled (bounds (Sub (Div (Whole (2 * count + 3)) (Whole 2)) (Div (Whole 1) (Whole (2 ^ 20))))).

Lemma counted_is_right p count : counted (bounds (Mul (Whole (2 ^ 62)) p)) count = true ->
  count = Z.max 0 (Zfloor (IZR (2 ^ 62) * denote p - 1/2)).
Proof.
  unfold counted. rewrite andb_true_iff, orb_true_iff, andb_true_iff, Z.eqb_eq, Z.leb_le. intros [Low High].
  apply (at_most_correct (Mul _ p)) in High. cbn [denote] in High. rewrite plus_IZR, mult_IZR in High.
  assert (T : 0 < 1 / IZR (2 ^ 20)) by (apply Rdiv_lt_0_compat; [lra|apply IZR_lt; reflexivity]).
  set (x := IZR (2 ^ 62) * denote p) in *. destruct Low as [->|[C Low]].
  - rewrite Z.max_l; [reflexivity|]. apply Z.lt_succ_r, lt_IZR. rewrite succ_IZR.
    generalize (Zfloor_lb (x - 1/2)). lra.
  - apply (at_most_correct _ (Mul _ p)) in Low. cbn [denote] in Low. rewrite plus_IZR, mult_IZR in Low. fold x in Low.
    rewrite (Zfloor_imp count), Z.max_r; [reflexivity|lia|]. rewrite plus_IZR. lra.
Qed.

Definition is_table_check (t : digit) : bool :=
  forallb (fun c => (0 <=? item (thresholds t) c) && (item (thresholds t) c <? 2 ^ 56)
    && (0 <=? item (entries t) c) && (item (entries t) c <? 64))%Z (indices 64)
  && (sum 6 (entry_words t) =? 2 ^ 62)%Z.

(* For probabilities parts / whole, where bounds of the whole are computed once. *)
Definition has_counts (parts : Z -> term) (whole : term) (t : digit) : bool :=
  is_table_check t
  && let whole := bounds whole in
     forallb (fun e => counted (Bounds.mul precision (bounds (Whole (2 ^ 62)))
       (Bounds.div precision (bounds (parts e)) whole)) (entry_words t e)) (indices 63).

Definition page_term (page : Z) : term := Sub (from_term (63 * Z.to_nat page)) (from_term (63 * Z.to_nat page + 63)).
Definition sound_staircase (pages : digit) (tables : list digit) : bool :=
  let n := length tables in
  (1 <=? n)%nat && (n <=? 63)%nat
  && at_most (Mul (Whole (2 ^ 63)) (from_term (63 * n))) (from_term 0)
  && has_counts (fun page => if (page <? Z.of_nat n)%Z then page_term page else Whole 0) (from_term 0) pages
  && forallb (fun page => has_counts (fun e => mass_term (63 * page + Z.to_nat e)) (page_term (Z.of_nat page))
       (nth page tables pages)) (seq 0 n).

Lemma fits_by_counts p t parts whole : has_counts parts whole t = true ->
  (forall e, (0 <= e < 63)%Z -> denote (parts e) / denote whole = p e) ->
  (forall e, (0 <= e < 64)%Z -> 0 <= p e) -> mean 6 p = 1/64 -> IZR (2 ^ 62) * p 63%Z < 1 -> fits p t.
Proof.
  unfold has_counts, is_table_check. rewrite !andb_true_iff, !forallb_forall, Z.eqb_eq. intros [[T W] C] E N M L.
  constructor; try assumption.
  - split; [|exact W]. intros c I. specialize (T c (in_indices 64 c I)). rewrite !andb_true_iff in T.
    rewrite !Z.leb_le, !Z.ltb_lt in T. tauto.
  - intros e I. rewrite <- (E e I). apply (counted_is_right (Div (parts e) whole)), C, (in_indices 63), I.
Qed.

Theorem sound_staircase_is_sound pages tables : sound_staircase pages tables = true ->
  sound_pages staircase_law pages tables.
Proof.
  unfold sound_staircase. rewrite !andb_true_iff, !Nat.leb_le, forallb_forall. intros [[[[N1 N2] B] C] E].
  destruct staircase_is_a_law as [Positive Whole_]. set (n := length tables) in *.
  assert (A : 0 < all_masses) by (unfold all_masses; generalize (masses_are_positive 1); lra).
  assert (F0 : from 0 = all_masses) by reflexivity.
  assert (Number : (1 <= length tables <= 63)%nat) by (fold n; lia).
  assert (Page : forall page, (page < n)%nat -> of_page staircase_law tables (Z.of_nat page)
    = (from (63 * page) - from (63 * page + 63)) / all_masses).
  { intros page L. rewrite (pages_from_at_least _ _ Positive Whole_ Number) by exact L.
    rewrite !at_least_of_the_staircase. unfold Rdiv. ring. }
  assert (PagePositive : forall page, (page < n)%nat -> 0 < of_page staircase_law tables (Z.of_nat page)).
  { intros page L. rewrite (pages_from_at_least _ _ Positive Whole_ Number) by exact L.
    rewrite <- (sum_from _ Positive Whole_ (63 * page) 62). apply sum_is_positive, Positive. }
  assert (Beyond : 0 < at_least staircase_law (63 * n) /\ IZR (2 ^ 62) * at_least staircase_law (63 * n) < 1).
  { split; [apply (at_least_follows _ Positive Whole_)|]. apply at_most_correct in B.
    change (IZR (2 ^ 63) * denote (from_term (63 * n)) <= denote (from_term 0)) in B. rewrite !from_is, F0 in B.
    rewrite at_least_of_the_staircase. apply (Rmult_lt_reg_r all_masses); [exact A|].
    replace (IZR (2 ^ 62) * (from (63 * n) / all_masses) * all_masses) with (IZR (2 ^ 62) * from (63 * n)) by (field;
      lra).
    change (2 ^ 63)%Z with (2 * 2 ^ 62)%Z in B. rewrite mult_IZR in B. lra. }
  constructor; [exact Positive|exact Whole_|exact Number| |].
  - apply (fits_by_counts _ _ _ _ C).
    + intros e I. destruct (Z.ltb_spec e (Z.of_nat n)) as [L|L].
      * rewrite <- (Z2Nat.id e) at 2 by lia. rewrite Page by lia.
        change ((denote (from_term (63 * Z.to_nat e)) - denote (from_term (63 * Z.to_nat e + 63))) / denote (from_term
          0)
          = (from (63 * Z.to_nat e) - from (63 * Z.to_nat e + 63)) / all_masses). rewrite !from_is, F0. reflexivity.
      * unfold of_page. fold n. rewrite (proj2 (Z.ltb_ge _ _)), (proj2 (Z.eqb_neq e 63)) by lia. apply Rmult_0_l.
    + intros e I. destruct (Z.ltb_spec e (Z.of_nat n)) as [L|L].
      * rewrite <- (Z2Nat.id e) by lia. apply Rlt_le, PagePositive. lia.
      * unfold of_page. fold n. rewrite (proj2 (Z.ltb_ge _ _)) by lia. destruct (e =? 63)%Z; lra.
    + apply pages_add_up; assumption.
    + unfold of_page. fold n. rewrite (proj2 (Z.ltb_ge _ _)), Z.eqb_refl by lia. apply Beyond.
  - intros page t I. assert (L : (page < n)%nat) by (apply nth_error_Some; rewrite I; discriminate).
    specialize (E page (proj2 (in_seq n 0 page) ltac:(lia))). rewrite (nth_error_nth _ _ pages I) in E.
    specialize (PagePositive page L). specialize (Page page L).
    apply (fits_by_counts _ _ _ _ E).
    + intros e He. unfold of_entry. rewrite (proj2 (Z.eqb_neq e 63)), Page, !Nat2Z.id by lia. rewrite Page in
      PagePositive.
      unfold page_term, staircase_law. rewrite Nat2Z.id.
      change (denote (mass_term (63 * page + Z.to_nat e)) / (denote (from_term (63 * page)) - denote (from_term (63 *
        page + 63)))
        = mass (63 * page + Z.to_nat e) / all_masses / ((from (63 * page) - from (63 * page + 63)) / all_masses)).
      rewrite mass_is, !from_is. assert (from (63 * page) - from (63 * page + 63) <> 0).
      { intros Z. rewrite Z in PagePositive. unfold Rdiv in PagePositive. rewrite Rmult_0_l in PagePositive. lra. }
      field. lra.
    + intros e _. unfold of_entry. destruct (e =? 63)%Z; [lra|]. apply Rlt_le, Rdiv_lt_0_compat; [apply
      Positive|assumption].
    + apply entries_add_up; assumption.
    + unfold of_entry. rewrite Z.eqb_refl. lra.
Qed.
End Law.
