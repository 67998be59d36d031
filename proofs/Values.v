(* What a trial decides is right; each value has a probability proportional to f, in the bins and in the tail, and so
   has the first value that a run of trials accepts. *)
From Coq Require Import Reals ZArith List Bool Lia Lra.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Core.
From Dpnoise Require Import Decide Model Words Sound Trial Mass.
Open Scope R_scope.

(* Two lists, item by item. *)
Lemma length_of_both {A B} (P : A -> B -> Prop) l m : Forall2 P l m -> length l = length m.
Proof. induction 1; simpl; congruence. Qed.

Lemma nth_of_both {A B} (P : A -> B -> Prop) l m d e : Forall2 P l m -> forall i, (i < length l)%nat ->
  P (nth i l d) (nth i m e).
Proof.
  induction 1 as [|a b l m H _ IH]; intros i L; simpl in L; [lia|]. destruct i as [|i]; simpl; [exact H|apply IH; lia].
Qed.

Section Trials.
Variables (l : law) (t : tables).
Hypothesis S : sound l t = true.
Let facts := sound_facts l t S.

(* The words of a trial that does not choose the tail decide as denote numbers would. *)
Definition right (bin offset accept : Z) (result : outcome * Z) : Prop :=
  let h := bin_of t bin in
  let a := magnitude_of t h offset in
  let u := Z.shiftr accept 1 in
  let W := item (weights t) h in
  let R := right_side l t 63 (copies_of t h a) a in
  let negative := match signs t with One => false | _ => Z.odd accept end in
  let '(decided, value) := result in
  value = (if negative then - a else a)%Z /\
  match decided with
  | Accepted => (IZR u + 1) * IZR W <= R
  | Rejected => R <= IZR u * IZR W \/ (signs t <> Folded /\ negative = true /\ a = 0%Z)
  | Undecided => True
  | Tail => False
  end.

Theorem trial_is_right fused bin offset accept : (0 <= bin < 2 ^ 32)%Z -> (0 <= accept < 2 ^ 64)%Z
  -> bin_of t bin <> 63%Z ->
  right bin offset accept (trial fused t bin offset accept).
Proof.
  intros Hb Ha N. unfold right, trial. cbv zeta. rewrite (proj2 (Z.eqb_neq _ _) N).
  generalize (bin_range t bin Hb). intros B. set (h := bin_of t bin) in *. set (a := magnitude_of t h offset).
  generalize (magnitude_range l t S h offset ltac:(lia)) (shift_range _ _ facts). fold a. unfold tail_start. intros A Q.
  assert (2 ^ shift t <= 2 ^ 50)%Z by (apply Z.pow_le_mono_r; lia).
  assert (U : (0 <= Z.shiftr accept 1 < 2 ^ 63)%Z).
  { rewrite Z.shiftr_div_pow2 by lia. split; [apply Z.div_pos; lia|apply Z.div_lt_upper_bound; lia]. }
  assert (E : (0 <= copies_of t h a <= 4)%Z).
  { unfold copies_of. generalize (e_range h B). destruct (signs t); try destruct (a <? 1)%Z; lia. }
  generalize (judge_is_right l t S fused a (copies_of t h a) _ _ ltac:(lia) E (weight_range _ _ facts h B) U).
  destruct (judge _ _ _ _ _ _) as [below above]. intros [HB HA].
  set (negative := match signs t with One => false | _ => Z.odd accept end). split; [reflexivity|].
  destruct (match signs t with Folded => false | _ => negative && (a =? 0)%Z end) eqn:Zero.
  - right. destruct (signs t); try discriminate; apply andb_true_iff in Zero; rewrite Z.eqb_eq in Zero; repeat split;
      tauto || discriminate.
  - destruct below; [apply HB; reflexivity|]. destruct above; [left; apply HA; reflexivity|exact I].
Qed.

(* In the limit of all bits a trial gives x with the probability factor f(|x|). *)
Theorem values_of_bins fused x : (Z.abs x < tail_start t)%Z -> (match signs t with One => 0 <= x | _ => True end)%Z ->
  is_lim_seq (fun m => probability l t fused m x) (factor t * density l (Z.abs x)).
Proof.
  intros Hx Hs. apply (is_lim_seq_le_le (fun m => factor t * density l (Z.abs x) - / IZR (2^ (63 + m))) _ (fun _ =>
    factor t * density l (Z.abs x))).
  - intros m. apply trial_law; assumption.
  - replace (Finite (factor t * density l (Z.abs x))) with (Rbar_plus (factor t * density l (Z.abs x)) (Rbar_opp 0)) by
      (simpl; f_equal; ring).
    apply is_lim_seq_minus'; [apply is_lim_seq_const|].
    apply (is_lim_seq_ext (fun m => / IZR (2^ 63) * (1/2) ^ m)).
    + intros m. rewrite Nat2Z.inj_add, Z.pow_add_r, mult_IZR by lia. rewrite <- (pow_IZR 2 m).
      replace (1/2) with (/2) by lra. rewrite pow_inv, Rinv_mult. reflexivity.
    + replace 0 with (/ IZR (2^ 63) * 0) by ring. apply is_lim_seq_mult'; [apply is_lim_seq_const|].
      apply is_lim_seq_geom. rewrite Rabs_pos_eq; lra.
  - apply is_lim_seq_const.
Qed.

(* The tail. A trial that chose it is kept with the probability that its room allows; then z is drawn: low bits, until a
   coin of probability q^low shows heads, and as many times 2^s as coins of q^(2^s) show heads before tails; for a
   Gaussian, a coin of f(z) decides whether the trial is accepted. *)
Definition q : R := denote (tail_ratio l t).
Definition kept : R :=
  IZR (amplitude t * signs_per_bin t) * density l (first_of t 63) / (IZR (item (weights t) 63 * 2 ^ shift t) * (1 - q)).

Lemma q_range : 0 < q < 1.
Proof.
  unfold q, tail_ratio. cbn [denote]. split; [apply exp_pos|]. rewrite <- exp_0. apply exp_increasing.
  assert (0 < IZR (divisor l)) by (apply IZR_lt, divisor_positive, (numerator_positive _ _ facts)).
  assert (0 < IZR (if gaussian l then 2 * first_of t 63 * denominator l ^ 2 else denominator l));
    [|assert (0 < IZR (if gaussian l then 2 * first_of t 63 * denominator l ^ 2 else denominator l) / IZR (divisor l))
    by (apply Rdiv_lt_0_compat; assumption); lra].
  apply IZR_lt. generalize (denominator_positive _ _ facts) (shift_range _ _ facts). intros.
  destruct (gaussian l); [|lia].
  unfold first_of. change (start_of 63) with 27%Z.
  assert (0 < 2 ^ (e_of 63 + shift t))%Z by (apply Z.pow_pos_nonneg; [lia|change (e_of 63) with 3%Z; lia]).
  assert (0 < denominator l ^ 2)%Z by (apply Z.pow_pos_nonneg; lia). nia.
Qed.

Theorem kept_is_a_probability : 0 <= kept <= 1.
Proof.
  generalize q_range (tail_has_room _ _ facts). fold q. intros Q Room.
  assert (W : (1 <= item (weights t) 63 * 2 ^ shift t)%Z).
  { generalize (weight_range _ _ facts 63 ltac:(lia)) (shift_range _ _ facts). intros.
    assert (0 < 2 ^ shift t)%Z by (apply Z.pow_pos_nonneg; lia). nia. }
  apply IZR_le in W. assert (D : 0 < IZR (item (weights t) 63 * 2 ^ shift t) * (1 - q)) by (apply Rmult_lt_0_compat;
    lra).
  unfold kept. split.
  - apply Rmult_le_pos; [|apply Rlt_le, Rinv_0_lt_compat, D]. apply Rmult_le_pos; [|apply Rlt_le, exp_pos].
    apply IZR_le.
    generalize (amplitude_range _ _ facts). unfold signs_per_bin. destruct (signs t); lia.
  - apply Rmult_le_reg_r with (IZR (item (weights t) 63 * 2 ^ shift t) * (1 - q)); [exact D|]. unfold Rdiv.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra. exact Room.
Qed.
End Trials.

(* Repeated until a coin shows heads: the first success of trials that give y with probability p, and nothing with r. *)
Lemma first_success p r : 0 <= r < 1 -> is_series (fun n => r ^ n * p) (p / (1 - r)).
Proof.
  intros H. replace (p / (1 - r)) with (/ (1 - r) * p) by (unfold Rdiv; ring).
  apply (is_series_ext (fun n => p * r ^ n)); [intros; apply Rmult_comm|]. rewrite Rmult_comm.
  apply (is_series_scal (K := R_AbsRing) (V := R_NormedModule) p (fun n => r ^ n)). apply is_series_geom.
  rewrite Rabs_pos_eq; lra.
Qed.

Lemma pow_twice (q : R) n : (q * q) ^ n = q ^ (2 * n).
Proof. rewrite pow_mult. f_equal. simpl. ring. Qed.

(* The mean of q^w over words of s bits. *)
Lemma mean_of_powers s : forall q, 0 < q < 1
  -> mean s (fun w => q ^ Z.to_nat w) = (1 - q ^ (2 ^ s)) / ((1 - q) * 2 ^ s).
Proof.
  induction s as [|s IH]; intros q Q; cbn [mean].
  - simpl. field. lra.
  - rewrite (mean_ext s (fun w => q ^ Z.to_nat (2 * w)) (fun w => (q * q) ^ Z.to_nat w)).
    2: { intros w W. rewrite pow_twice. f_equal. lia. }
    rewrite (mean_ext s (fun w => q ^ Z.to_nat (2 * w + 1)) (fun w => q * (q * q) ^ Z.to_nat w)).
    2: { intros w W. rewrite pow_twice, tech_pow_Rmult. f_equal. lia. }
    rewrite mean_scale, IH, pow_twice by (split; nra). change (2 * 2 ^ s)%nat with (2 ^ Datatypes.S s)%nat.
    change (2 ^ Datatypes.S s) with (2 * 2 ^ s). assert (2 ^ s <> 0) by (apply pow_nonzero; lra). field.
    repeat split; try assumption; try lra; nra.
Qed.

(* Low bits y of s bits have probability q^y (1 - q) / (1 - q^(2^s)). *)
Theorem low_bits s q y : 0 < q < 1 -> (0 <= y < 2^ s)%Z ->
  is_series (fun n => (1 - mean s (fun w => q ^ Z.to_nat w)) ^ n * mean s (fun w => q ^ Z.to_nat w * one (w =? y)%Z))
            (q ^ Z.to_nat y * (1 - q) / (1 - q ^ (2 ^ s))).
Proof.
  intros Q Y. assert (P : 0 < q ^ (2 ^ s) < 1) by (split; [apply pow_lt; lra|apply pow_lt_1_compat; [lra|];
    apply Nat.neq_0_lt_0, Nat.pow_nonzero; lia]).
  assert (T : 1 <= 2 ^ s) by (apply pow_R1_Rle; lra).
  assert (E : mean s (fun w => q ^ Z.to_nat w * one (w =? y)%Z) = q ^ Z.to_nat y / 2 ^ s).
  { rewrite (mean_ext s _ (fun w => q ^ Z.to_nat y * one (w =? y)%Z)).
    - rewrite mean_scale, mean_single by exact Y. rewrite <- pow_IZR. field. lra.
    - intros w W. destruct (Z.eqb_spec w y) as [->|]; simpl; ring. }
  rewrite E, mean_of_powers by exact Q. set (m := (1 - q ^ (2 ^ s)) / ((1 - q) * 2 ^ s)).
  assert (M : 0 < m <= 1).
  { split; [apply Rdiv_lt_0_compat; [lra|apply Rmult_lt_0_compat; lra]|]. unfold m.
    rewrite <- mean_of_powers by exact Q.
    rewrite <- (mean_const s 1). apply mean_le. intros w _. rewrite <- (pow1 (Z.to_nat w)). apply pow_incr. lra. }
  replace (q ^ Z.to_nat y * (1 - q) / (1 - q ^ (2 ^ s))) with (q ^ Z.to_nat y / 2 ^ s / (1 - (1 - m)));
    [apply first_success; lra|].
  unfold m. field. repeat split; lra.
Qed.

(* High bits: h heads of probability q^(2^s), then tails. Together z = 2^s h + y has probability (1 - q) q^z. *)
Theorem low_and_high_bits s q y h : 0 < q < 1 ->
  q ^ y * (1 - q) / (1 - q ^ (2 ^ s)) * ((q ^ (2 ^ s)) ^ h * (1 - q ^ (2 ^ s))) = (1 - q) * q ^ (2 ^ s * h + y).
Proof.
  intros Q. assert (q ^ (2 ^ s) < 1) by (apply pow_lt_1_compat; [lra|]; apply Nat.neq_0_lt_0, Nat.pow_nonzero; lia).
  rewrite pow_add, pow_mult. field. lra.
Qed.

(* The accepted values are independent of which trials were accepted. *)
Section Pattern.
Variables (A : Type) (f : A -> R) (c r : R).
Fixpoint run_probability (run : list (option A)) : R :=
  match run with nil => 1 | Some x :: run => c * f x * run_probability run | None :: run => r * run_probability run end.
Fixpoint pattern_probability (run : list (option A)) : R :=
  match run with nil => 1 | Some _ :: run => c * pattern_probability run | None :: run => r * pattern_probability run
    end.
Fixpoint values_probability (run : list (option A)) : R :=
  match run with nil => 1 | Some x :: run => f x * values_probability run | None :: run => values_probability run end.

Theorem pattern_and_values_are_independent run : run_probability run = pattern_probability run * values_probability run.
Proof. induction run as [|[x|] run IH]; simpl; [ring| |]; rewrite IH; ring. Qed.
End Pattern.

Section Tail.
Variables (l : law) (t : tables).
Hypothesis S : sound l t = true.
Let facts := sound_facts l t S.

Lemma exp_pow x n : exp x ^ n = exp (INR n * x).
Proof.
  induction n; simpl pow; [rewrite Rmult_0_l, exp_0; reflexivity|]. rewrite IHn, <- exp_plus, S_INR. f_equal. ring.
Qed.

Lemma tail_starts : first_of t 63 = tail_start t.
Proof.
  unfold first_of, tail_start. change (start_of 63) with 27%Z. change (e_of 63) with 3%Z.
  rewrite Z.pow_add_r by (generalize (shift_range _ _ facts); lia). ring.
Qed.

(* That a trial gives the value of the tail's start and z more: chosen, of that sign, kept, z, and for a Gaussian a last
   coin. *)
Definition tail_probability (z : Z) : R :=
  IZR (item (weights t) 63) / IZR (2 ^ 32) * match signs t with One => 1 | _ => 1/2 end * kept l t
    * ((1 - q l t) * q l t ^ Z.to_nat z) * (if gaussian l then density l z else 1).

Theorem values_of_tail z : (0 <= z)%Z -> tail_probability z = factor t * density l (tail_start t + z).
Proof.
  intros Hz. unfold tail_probability. generalize (q_range l t S). intros Q.
  assert (W : 1 <= IZR (item (weights t) 63)) by (apply IZR_le; generalize (weight_range _ _ facts 63); lia).
  generalize (shift_range _ _ facts). intros Sh.
  assert (T : 0 < IZR (2 ^ shift t)) by (apply IZR_lt, Z.pow_pos_nonneg; lia).
  generalize tail_starts. intros F.
  assert (D : density l (tail_start t + z) = density l (tail_start t) * (q l t ^ Z.to_nat z * (if gaussian l then
    density l z else 1))).
  { assert (N : IZR (divisor l) <> 0) by (apply Rgt_not_eq, IZR_lt, divisor_positive, (numerator_positive _ _ facts)).
    unfold q, tail_ratio. cbn [denote]. rewrite exp_pow, INR_IZR_INZ, Z2Nat.id, F by exact Hz. unfold density, dividend.
    destruct (gaussian l).
    - rewrite <- !exp_plus. f_equal. rewrite !Z.pow_2_r, !mult_IZR, !plus_IZR. field. exact N.
    - rewrite Rmult_1_r, <- exp_plus. f_equal. rewrite !mult_IZR, plus_IZR. field. exact N. }
  rewrite D. unfold kept, factor. rewrite F, !mult_IZR, Z.pow_add_r, mult_IZR by lia.
  assert (P : 0 < IZR (2 ^ 32)) by (apply IZR_lt; reflexivity).
  unfold signs_per_bin. destruct (signs t), (gaussian l); field; repeat split; lra.
Qed.
End Tail.
