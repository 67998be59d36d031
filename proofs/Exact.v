(* The composed theorem. A trial gives one value at most, so all of them together have a probability of at most 1; with
   what is known of each of them, the samplers by trials are exact. *)
From Coq Require Import Reals ZArith List Bool Lia Lra.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Core.
From Dpnoise Require Import Model Words Sound Mass Values Sums.
Import ListNotations.
Open Scope R_scope.

Section Whole.
Variables (l : law) (t : tables).
Hypothesis S : sound l t = true.
Let facts := sound_facts l t S.

Definition tail_chosen : R := IZR (item (weights t) 63) / IZR (2 ^ 32).

Lemma one_value_at_most o xs : NoDup xs ->
  sum_over (fun x => one (is_value x o)) xs <= match o with Some _ => 1 | None => 0 end.
Proof.
  destruct o as [v|]; simpl; [|apply is_sum_of_zeros].
  replace 1 with (one (v =? v)%Z) by (rewrite Z.eqb_refl; reflexivity).
  apply (one_term_at_most (fun x => one (v =? x)%Z)); [rewrite Z.eqb_refl; simpl; lra|].
  intros x H. destruct (Z.eqb_spec v x); [congruence|reflexivity].
Qed.

Lemma values_of_a_trial fused m xs : NoDup xs -> sum_over (probability l t fused m) xs <= 1 - tail_chosen.
Proof.
  intros N. set (E := fun G : Z -> Z -> Z -> Z -> R =>
    mean 32 (fun b => mean (offset_bits t) (fun off => mean 64 (fun acc => mean m (fun more => G b off acc more))))).
  assert (P : sum_over (probability l t fused m) xs = E (fun b off acc more => sum_over (fun x => one (is_value x
    (settled l t fused m b off acc more))) xs)).
  { clear N. induction xs as [|x xs IH]; cbn [sum_over fold_right].
    - unfold E. symmetry. rewrite <- (mean_const 32 0) at 1. apply mean_ext. intros.
      rewrite <- (mean_const (offset_bits t) 0) at 1. apply mean_ext. intros.
      rewrite <- (mean_const 64 0) at 1. apply mean_ext. intros. rewrite mean_const. reflexivity.
    - unfold sum_over in IH. rewrite IH. unfold E, probability. rewrite <- mean_plus. apply mean_ext. intros.
      rewrite <- mean_plus. apply mean_ext. intros.
      rewrite <- mean_plus. apply mean_ext. intros. rewrite <- mean_plus. reflexivity. }
  rewrite P. apply Rle_trans with (mean 32 (fun b => 1 + -1 * one (bin_of t b =? 63)%Z)).
  - unfold E. apply mean_le. intros b Hb. rewrite <- (mean_const (offset_bits t) (1 + _)). apply mean_le. intros off _.
    rewrite <- (mean_const 64 (1 + _)). apply mean_le. intros acc _. rewrite <- (mean_const m (1 + _)). apply mean_le.
    intros more _.
    eapply Rle_trans; [apply one_value_at_most, N|]. destruct (settled l t fused m b off acc more) eqn:Q.
    + unfold settled, trial in Q. cbv zeta in Q. destruct (bin_of t b =? 63)%Z; [discriminate|]. simpl. lra.
    + destruct (bin_of t b =? 63)%Z; simpl; lra.
  - rewrite mean_plus, mean_const, mean_scale, (bin_probability l t S 63) by lia. unfold tail_chosen. lra.
Qed.

(* The values of the bins have what is left when the tail is chosen. *)
Theorem bins_add_up_to xs : NoDup xs -> (forall x, In x xs -> (Z.abs x < tail_start t)%Z /\ (signs t = One
  -> 0 <= x)%Z) ->
  sum_over (fun x => factor t * density l (Z.abs x)) xs <= 1 - tail_chosen.
Proof.
  intros N H. assert (L : is_lim_seq (fun m => sum_over (probability l t false m) xs) (sum_over (fun x => factor t *
    density l (Z.abs x)) xs)).
  { clear N. induction xs as [|x xs IH]; cbn [sum_over fold_right]; [apply is_lim_seq_const|]. apply is_lim_seq_plus'.
    - destruct (H x (or_introl eq_refl)) as [A B]. apply values_of_bins; [exact S|exact A|].
      destruct (signs t); try exact I. apply B. reflexivity.
    - apply IH. intros y Y. apply H. right. exact Y. }
  exact (is_lim_seq_le _ _ _ _ (fun m => values_of_a_trial false m xs N) L (is_lim_seq_const _)).
Qed.

Lemma tail_chosen_is_positive : 0 < tail_chosen.
Proof.
  apply Rdiv_lt_0_compat; apply IZR_lt; [generalize (weight_range _ _ facts 63 ltac:(lia)); lia|reflexivity].
Qed.

(* Those of the tail, of both signs where there are two, have the probability that it is chosen. *)
Theorem tail_adds_up_to n :
  match signs t with One => 1 | _ => 2 end * sum_f_R0 (fun z => tail_probability l t (Z.of_nat z)) n <= tail_chosen.
Proof.
  generalize (q_range l t S) (kept_is_a_probability l t S). intros Q K.
  generalize (Rlt_le _ _ tail_chosen_is_positive). intros W.
  set (w := tail_chosen * match signs t with One => 1 | _ => 1/2 end).
  assert (W' : 0 <= w) by (apply Rmult_le_pos; [exact W|destruct (signs t); lra]).
  assert (E : sum_f_R0 (fun z => tail_probability l t (Z.of_nat z)) n <= w * (1 - q l t ^ Datatypes.S n)).
  { assert (One : forall z, tail_probability l t (Z.of_nat z) <= w * ((1 - q l t) * q l t ^ z)).
    { intros z. unfold tail_probability. fold tail_chosen. fold w. rewrite Nat2Z.id.
      assert (X : 0 <= (if gaussian l then density l (Z.of_nat z) else 1) <= 1).
      { destruct (gaussian l); [|lra]. split; [apply Rlt_le, exp_pos|]. rewrite <- exp_0. unfold density.
        apply Raux.exp_le.
        apply Ropp_le_cancel. rewrite Ropp_involutive, Ropp_0. apply Rmult_le_pos.
        - apply IZR_le. unfold dividend.
          assert (0 <= Z.of_nat z * denominator l)%Z by (generalize (denominator_positive _ _ facts); nia).
          destruct (gaussian l); [apply Z.pow_nonneg|]; assumption.
        - apply Rlt_le, Rinv_0_lt_compat, IZR_lt, divisor_positive, (numerator_positive _ _ facts). }
      assert (P : 0 <= w * ((1 - q l t) * q l t ^ z)) by (apply Rmult_le_pos; [exact W'|apply Rmult_le_pos;
        [lra|apply pow_le; lra]]).
      apply Rle_trans with (w * ((1 - q l t) * q l t ^ z) * (1 * 1)); [|lra].
      replace (w * kept l t * ((1 - q l t) * q l t ^ z) * (if gaussian l then density l (Z.of_nat z) else 1))
        with (w * ((1 - q l t) * q l t ^ z) * (kept l t * (if gaussian l then density l (Z.of_nat z) else 1))) by ring.
      apply Rmult_le_compat_l; [exact P|]. apply Rmult_le_compat; lra. }
    induction n as [|n IH].
    - generalize (One 0%nat). simpl. lra.
    - rewrite tech5. specialize (One (Datatypes.S n)). rewrite <- (tech_pow_Rmult _ (Datatypes.S n)). nra. }
  assert (0 <= q l t ^ Datatypes.S n) by (apply pow_le; lra).
  assert (sum_f_R0 (fun z => tail_probability l t (Z.of_nat z)) n <= w) by nra.
  unfold w in *. destruct (signs t); lra.
Qed.

(* The sum of f over the values of one magnitude, and over all values. *)
Definition mass (a : nat) : R :=
  match signs t with One => 1 | _ => if (a =? 0)%nat then 1 else 2 end * density l (Z.of_nat a).
Definition total : R := Series mass.

(* The values of magnitudes below n. *)
Fixpoint values_below (n : nat) : list Z :=
  match n with
  | O => []
  | Datatypes.S n =>
      (if match signs t with One => true | _ => (n =? 0)%nat end then [Z.of_nat n] else [Z.of_nat n; - Z.of_nat n]%Z)
      ++ values_below n
  end.
Lemma values_below_S n : values_below (Datatypes.S n)
  = (if match signs t with One => true | _ => (n =? 0)%nat end then [Z.of_nat n] else [Z.of_nat n; - Z.of_nat n]%Z)
    ++ values_below n.
Proof. reflexivity. Qed.

Lemma in_values_below n x : In x (values_below n) -> (Z.abs x < Z.of_nat n)%Z /\ (signs t = One -> 0 <= x)%Z.
Proof.
  induction n as [|n IH]; [contradiction|]. rewrite values_below_S, in_app_iff. intros [I|I].
  - destruct (signs t), n; simpl in I; repeat destruct I as [<-|I]; try contradiction; split; intros;
      lia || discriminate.
  - destruct (IH I). split; [lia|assumption].
Qed.

Lemma values_below_are_different n : NoDup (values_below n).
Proof.
  assert (A : forall n x, (Z.of_nat n <= Z.abs x)%Z -> ~ In x (values_below n))
    by (intros k x H I; destruct (in_values_below k x I); lia).
  induction n as [|n IH]; [constructor|]. rewrite values_below_S.
  destruct (match signs t with One => true | _ => (n =? 0)%nat end) eqn:E; cbn [app].
  - constructor; [apply A; lia|exact IH].
  - assert (0 < n)%nat by (destruct (signs t), n; try discriminate; lia).
    repeat constructor; [intros [H0|H0]; [lia|revert H0; apply A; lia]|apply A; lia|exact IH].
Qed.

Lemma sum_below n : sum_over (fun x => factor t * density l (Z.abs x)) (values_below (Datatypes.S n))
  = sum_f_R0 (fun a => factor t * mass a) n.
Proof.
  assert (Step : forall k, sum_over (fun x => factor t * density l (Z.abs x)) (values_below (Datatypes.S k))
    = factor t * mass k + sum_over (fun x => factor t * density l (Z.abs x)) (values_below k)).
  { intros k. rewrite values_below_S. unfold mass, sum_over.
    destruct (signs t), k; cbn [Nat.eqb app fold_right]; rewrite ?Z.abs_opp, ?(Z.abs_eq (Z.of_nat _)) by lia; ring. }
  rewrite Step. induction n as [|n IH]; [simpl; ring|]. rewrite Step, IH, tech5. ring.
Qed.

Lemma at_most_1 n : sum_f_R0 (fun a => factor t * mass a) n <= 1.
Proof.
  generalize (tail_start_positive l t S). intros P.
  destruct (Z.to_nat (tail_start t)) as [|T] eqn:E; [lia|].
  assert (Bins : forall k, (k <= T)%nat -> sum_f_R0 (fun a => factor t * mass a) k <= 1 - tail_chosen).
  { intros k K. rewrite <- sum_below. apply bins_add_up_to; [apply values_below_are_different|]. intros x I.
    destruct (in_values_below _ _ I). split; [lia|assumption]. }
  destruct (Nat.le_gt_cases n T) as [H|H].
  - generalize (Bins n H) tail_chosen_is_positive. lra.
  - replace n with (T + Datatypes.S (n - T - 1))%nat by lia. rewrite (tech2 _ T (T + Datatypes.S (n - T - 1))) by lia.
    replace (T + Datatypes.S (n - T - 1) - Datatypes.S T)%nat with (n - T - 1)%nat by lia.
    generalize (Bins T (Nat.le_refl T)) (tail_adds_up_to (n - T - 1)). rewrite scal_sum.
    rewrite (sum_eq (fun i => tail_probability l t (Z.of_nat i) * _) (fun i => factor t * mass (Datatypes.S T + i))).
    + lra.
    + intros z _. rewrite (values_of_tail l t S) by lia. unfold mass.
      replace (tail_start t + Z.of_nat z)%Z with (Z.of_nat (Datatypes.S T + z)) by lia.
      destruct (signs t); cbn [Nat.eqb Nat.add]; ring.
Qed.

Lemma factor_is_positive : 0 < factor t.
Proof.
  assert (0 < IZR (amplitude t)) by (apply IZR_lt; generalize (amplitude_range _ _ facts); lia).
  assert (0 < IZR (2 ^ (32 + shift t))) by (apply IZR_lt, Z.pow_pos_nonneg; generalize (shift_range _ _ facts); lia).
  unfold factor. apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat; assumption|destruct (signs t); lra].
Qed.

(* So the sum of f is finite, and a trial accepts with the probability factor * total, which is at most 1. *)
Lemma mass_is_positive a : 0 < mass a.
Proof.
  apply Rmult_lt_0_compat; [destruct (signs t); try destruct (a =? 0)%nat; lra|apply exp_pos].
Qed.

Lemma partial_sums n : sum_n mass n <= / factor t.
Proof.
  generalize factor_is_positive (at_most_1 n). rewrite sum_n_Reals. intros F.
  rewrite <- (sum_eq (fun a => mass a * factor t)) by (intros; ring). rewrite <- scal_sum. intros H.
  apply Rmult_le_reg_l with (factor t); [exact F|]. rewrite Rinv_r by lra. exact H.
Qed.

Theorem total_is_the_sum : is_series mass total.
Proof.
  apply Series_correct. apply (ex_finite_lim_seq_incr (sum_n mass) (/ factor t)); [|exact partial_sums].
  intros n. rewrite sum_Sn. generalize (mass_is_positive (Datatypes.S n)). unfold plus. simpl. lra.
Qed.

Theorem some_value_is_accepted : 0 < factor t * total <= 1.
Proof.
  generalize factor_is_positive. intros F.
  assert (B : forall n, mass 0 <= sum_n mass n).
  { induction n as [|n IH]; [rewrite sum_O; lra|]. rewrite sum_Sn. generalize (mass_is_positive (Datatypes.S n)).
    unfold plus. simpl. lra. }
  assert (L : is_lim_seq (sum_n mass) total) by exact total_is_the_sum.
  generalize (is_lim_seq_le _ _ _ _ B (is_lim_seq_const _) L).
  generalize (is_lim_seq_le _ _ _ _ partial_sums L (is_lim_seq_const _)).
  simpl. generalize (mass_is_positive 0). intros M High Low. split; [apply Rmult_lt_0_compat; lra|].
  apply Rmult_le_reg_l with (/ factor t); [apply Rinv_0_lt_compat, F|]. rewrite <- Rmult_assoc, Rinv_l by lra. lra.
Qed.

(* For sound tables the model of the kernel, with operations that are rounded one by one or fused, decides each trial
   right, and gives every value with a probability proportional to f: the bins' values, in the limit of all bits of the
   uniform number, and those of the tail. A trial gives some value with the probability factor * total; so the first
   value of a run of trials has the law. *)
Theorem trials_are_exact :
  (forall fused bin offset accept, (0 <= bin < 2 ^ 32)%Z -> (0 <= accept < 2 ^ 64)%Z -> bin_of t bin <> 63%Z ->
     right l t bin offset accept (trial fused t bin offset accept))
  /\ (forall fused x, (Z.abs x < tail_start t)%Z -> (signs t = One -> 0 <= x)%Z ->
     is_lim_seq (fun m => probability l t fused m x) (factor t * density l (Z.abs x)))
  /\ 0 <= kept l t <= 1
  /\ (forall z, (0 <= z)%Z -> tail_probability l t z = factor t * density l (tail_start t + z))
  /\ is_series mass total
  /\ 0 < factor t * total <= 1
  /\ (forall x, (signs t = One -> 0 <= x)%Z ->
     is_series (fun n => (1 - factor t * total) ^ n * (factor t * density l (Z.abs x))) (density l (Z.abs x) / total)).
Proof.
  split; [intros; apply trial_is_right; assumption|]. split.
  { intros fused x Hx Hs. apply values_of_bins; [exact S|exact Hx|]. destruct (signs t); try exact I. apply Hs.
    reflexivity. }
  split; [apply kept_is_a_probability, S|]. split; [intros z; apply (values_of_tail l t S)|].
  split; [exact total_is_the_sum|]. generalize some_value_is_accepted factor_is_positive. intros A F.
  split; [exact A|]. intros x _.
  replace (density l (Z.abs x) / total) with (factor t * density l (Z.abs x) / (1 - (1 - factor t * total))).
  - apply first_success. lra.
  - replace (1 - (1 - factor t * total)) with (factor t * total) by ring. field.
    split; intros E; rewrite E in *; lra.
Qed.
End Whole.
