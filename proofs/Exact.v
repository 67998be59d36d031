(* The composed theorem. A trial gives one value at most, so all of them together have a probability of at most 1; with
   what is known of each of them, the samplers by trials are exact. *)
From Coq Require Import Reals ZArith List Bool Lia Lra.
From Coquelicot Require Import Coquelicot.
From Flocq Require Import Core.
From Dpnoise Require Import Model Words Sound Mass Values.
Import ListNotations.
Open Scope R_scope.

Section Whole.
Variables (l : law) (t : tables).
Hypothesis S : sound l t = true.
Let facts := sound_facts l t S.

Definition sum_over (f : Z -> R) (xs : list Z) : R := fold_right (fun x s => f x + s) 0 xs.
Definition tail_chosen : R := IZR (item (weights t) 63) / IZR (2 ^ 32).

Lemma no_value v xs : ~ In v xs -> sum_over (fun x => one (v =? x)%Z) xs = 0.
Proof.
  induction xs as [|x xs IH]; intros H; cbn [sum_over fold_right]; [reflexivity|]. unfold sum_over in IH.
  rewrite IH by (intros I; apply H; right; exact I).
  destruct (Z.eqb_spec v x) as [->|]; [exfalso; apply H; left; reflexivity|simpl; lra].
Qed.

Lemma one_value_at_most o xs : NoDup xs -> sum_over (fun x => one (is_value x o)) xs <= match o with Some _ => 1 | None
  => 0 end.
Proof.
  intros N. induction N as [|x xs I N IH]; cbn [sum_over fold_right]; [destruct o; lra|]. unfold sum_over in IH.
  destruct o as [v|]; simpl in *; [|lra]. destruct (Z.eqb_spec v x) as [->|]; simpl; [|lra].
  generalize (no_value x xs I). unfold sum_over. intros ->. lra.
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

(* Those of the tail, of both signs where there are two, have the probability that it is chosen. *)
Theorem tail_adds_up_to n :
  match signs t with One => 1 | _ => 2 end * sum_f_R0 (fun z => tail_probability l t (Z.of_nat z)) n <= tail_chosen.
Proof.
  generalize (q_range l t S) (kept_is_a_probability l t S). intros Q K.
  assert (W : 0 <= tail_chosen).
  { apply Rmult_le_pos; [apply IZR_le; generalize (weight_range _ _ facts 63 ltac:(lia)); lia|apply Rlt_le,
      Rinv_0_lt_compat, IZR_lt; reflexivity]. }
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

(* For sound tables the model of the kernel, with operations that are rounded one by one or fused, decides each trial
   right, and gives every value with a probability proportional to f: the bins' values, in the limit of all bits of the
   uniform number, and those of the tail; together at most 1. What is left, r, is the probability that nothing is
   accepted: so the first value of a run of trials has the law. *)
Theorem trials_are_exact :
  (forall fused bin offset accept, (0 <= bin < 2 ^ 32)%Z -> (0 <= accept < 2 ^ 64)%Z -> bin_of t bin <> 63%Z ->
     right l t bin offset accept (trial fused t bin offset accept))
  /\ (forall fused x, (Z.abs x < tail_start t)%Z -> (signs t = One -> 0 <= x)%Z ->
     is_lim_seq (fun m => probability l t fused m x) (factor t * density l (Z.abs x)))
  /\ (forall xs, NoDup xs -> (forall x, In x xs -> (Z.abs x < tail_start t)%Z /\ (signs t = One -> 0 <= x)%Z) ->
     sum_over (fun x => factor t * density l (Z.abs x)) xs <= 1 - tail_chosen)
  /\ (forall n, match signs t with One => 1 | _ => 2 end * sum_f_R0 (fun z => tail_probability l t (Z.of_nat z)) n <=
    tail_chosen)
  /\ 0 <= kept l t <= 1
  /\ (forall z, (0 <= z)%Z -> tail_probability l t z = factor t * density l (tail_start t + z))
  /\ (forall r Z x, 0 <= r < 1 -> r + factor t * Z = 1 ->
     is_series (fun n => r ^ n * (factor t * density l (Z.abs x))) (density l (Z.abs x) / Z)).
Proof.
  split; [intros; apply trial_is_right; assumption|]. split.
  { intros fused x Hx Hs. apply values_of_bins; [exact S|exact Hx|]. destruct (signs t); try exact I. apply Hs.
    reflexivity. }
  split; [apply bins_add_up_to|]. split; [apply tail_adds_up_to|]. split; [apply kept_is_a_probability, S|].
  split; [intros z; apply (values_of_tail l t S)|].
  intros r Z x R E. apply (run_keeps_the_law _ (fun x => density l (Z.abs x))); try assumption. unfold factor.
  assert (0 < IZR (amplitude t)) by (apply IZR_lt; generalize (amplitude_range _ _ facts); lia).
  assert (0 < IZR (2 ^ (32 + shift t))) by (apply IZR_lt, Z.pow_pos_nonneg; generalize (shift_range _ _ facts); lia).
  apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat; assumption|destruct (signs t); lra].
Qed.
End Whole.
