(* The tail's loops of coins: each coin is decided right, and together they give what the series say. *)
From Coq Require Import Reals ZArith List Bool Lia Lra.
From Coquelicot Require Import Coquelicot.
From Dpnoise Require Import Decide Model Words Sound Mass Values Integers Fixed Refine Programs.
Open Scope R_scope.

Section Coins.
Variables (l : law) (at_precision : Z -> constants).
Hypothesis Numerator : (1 <= numerator l)%Z.
Hypothesis Denominator : (1 <= denominator l)%Z.

(* The probability of heads. *)
Definition p_of_tail (c : tail_coin) : R :=
  match c with
  | Decay start k => exp (- slope l * IZR (k * if gaussian l then 2 * start else 1))
  | Excess k => if gaussian l then density l k else 1
  end.
Definition allowed (c : tail_coin) : Prop :=
  match c with Decay start k => (0 <= start)%Z /\ (0 <= k)%Z | Excess k => (0 <= k)%Z end.

Lemma slope_is_positive : 0 < slope l.
Proof.
  apply Rdiv_lt_0_compat; apply IZR_lt; [apply dividend_positive; lia|apply divisor_positive, Numerator].
Qed.

Lemma density_is_power x : density l x = exp (- slope l * IZR (x * if gaussian l then x else 1)).
Proof.
  unfold density, slope, dividend. f_equal. destruct (gaussian l);
    rewrite ?Z.pow_2_r, !mult_IZR; unfold Rdiv; ring.
Qed.

Lemma power_range x : (0 <= x)%Z -> 0 < exp (- slope l * IZR x) <= 1.
Proof.
  intros X. split; [apply exp_pos|]. rewrite <- exp_0. apply Raux.exp_le. apply IZR_le in X.
  generalize slope_is_positive. intros. nra.
Qed.

Lemma tail_coin_range c : allowed c -> 0 <= p_of_tail c <= 1.
Proof.
  destruct c as [start k|k]; cbn [allowed p_of_tail].
  - intros [S K]. assert (0 <= k * if gaussian l then 2 * start else 1)%Z by (destruct (gaussian l); nia).
    generalize (power_range _ H). lra.
  - intros K. destruct (gaussian l) eqn:G; [|lra]. rewrite density_is_power, G. generalize (power_range (k * k)
    ltac:(nia)). lra.
Qed.

Theorem tail_coins_are_exact c :
  (forall n, (1 <= n)%Z -> sound_constants (at_precision n) /\ limbs (at_precision n) = n) ->
  allowed c -> exact tail_coin p_of_tail (sides_of_tail l at_precision) c.
Proof.
  intros Constants A. exists 1, (p_of_tail c). split; [lra|]. split; [field|]. split; [apply tail_coin_range, A|].
  destruct c as [start k|k]; cbn [allowed p_of_tail] in *; apply coins_hold.
  - unfold decay_bounds. apply power_between; trivial; [lia|destruct (gaussian l); lia].
  - unfold Integers.excess_bounds. destruct (gaussian l) eqn:G.
    + rewrite density_is_power, G. apply power_between; trivial.
    + intros n _. cbn [fst snd]. lra.
Qed.

(* One of the values of a sum. *)
Lemma sum_of_one a h n : sum_f_R0 (fun i => a i * one (Z.of_nat i =? Z.of_nat h)%Z) n = if (h <=? n)%nat then a h else
  0.
Proof.
  induction n as [|n IH].
  - simpl. destruct h; simpl; ring.
  - rewrite tech5, IH. destruct (Z.eqb_spec (Z.of_nat (S n)) (Z.of_nat h)) as [E|E].
    + replace h with (S n) by lia. rewrite (proj2 (Nat.leb_gt (S n) n)), Nat.leb_refl by lia. cbn [one]. ring.
    + destruct (Nat.leb_spec h n), (Nat.leb_spec h (S n)); try lia; cbn [one]; ring.
Qed.

Lemma limit_of_one (a : nat -> R) h : is_lim_seq (fun n => if (h <=? n)%nat then a h else 0) (a h).
Proof.
  apply (is_lim_seq_ext_loc (fun _ => a h)); [|apply is_lim_seq_const]. exists h. intros n H.
  rewrite (proj2 (Nat.leb_le h n)) by exact H. reflexivity.
Qed.

(* A loop of coins that stops at the first tails has the geometric law. *)
Theorem heads_are_geometric {C : Type} (p_of : C -> R) c h :
  is_lim_seq (fun fuel => expected C p_of (heads fuel c) (fun found => one (found =? Z.of_nat h)%Z))
    (p_of c ^ h * (1 - p_of c)).
Proof.
  apply is_lim_seq_incr_1. apply (is_lim_seq_ext (fun n => if (h <=? n)%nat then p_of c ^ h * (1 - p_of c) else 0)).
  - intros n. rewrite heads_are, (sum_of_one (fun h => p_of c ^ h * (1 - p_of c))). reflexivity.
  - apply (limit_of_one (fun h => p_of c ^ h * (1 - p_of c))).
Qed.

(* What a coin for the excess leaves of a function. *)
Lemma if_excess_is {C : Type} (p_of : C -> R) c beyond (g : option Z -> R) :
  p_of c = p_of_tail (Excess beyond) ->
  expected C p_of (if_excess l c beyond) g
  = p_of_tail (Excess beyond) * g (Some beyond) + (1 - p_of_tail (Excess beyond)) * g None.
Proof.
  intros E. unfold if_excess, if_heads. cbn [p_of_tail] in *. destruct (gaussian l); cbn [expected]; rewrite ?E; ring.
Qed.
End Coins.

(* The loops of a trial that chose the tail: its value lies z beyond the start with the probability of Values.v. *)
Section Trials.
Variables (l : law) (t : tables).
Hypothesis S : sound l t = true.
Let facts := sound_facts l t S.
Notation p_of := (p_of_tail l).

Lemma decay_is k : (0 <= k)%Z -> p_of (Decay (tail_start t) k) = q l t ^ Z.to_nat k.
Proof.
  intros K. unfold q, tail_ratio. cbn [denote p_of_tail]. rewrite exp_pow, INR_IZR_INZ, Z2Nat.id, (tail_starts l t S)
    by exact K.
  f_equal. unfold slope, dividend. destruct (gaussian l); rewrite ?Z.pow_2_r, !mult_IZR; unfold Rdiv; ring.
Qed.

Theorem values_beyond z : (0 <= z)%Z ->
  is_lim_seq (fun fuel => expected tail_coin p_of (beyond l fuel (tail_start t) (shift t)) (fun found => one (is_value
    z found)))
    ((1 - q l t) * q l t ^ Z.to_nat z * (if gaussian l then density l z else 1)).
Proof.
  intros Z0. generalize (q_range l t S) (shift_range _ _ facts). intros Q Sh.
  set (s := Z.to_nat (shift t)). assert (Es : shift t = Z.of_nat s) by (unfold s; lia).
  assert (P : (0 < 2^ s)%Z) by apply pow_positive.
  set (y := (z mod 2^ s)%Z). set (h := Z.to_nat (z / 2^ s)).
  assert (Y : (0 <= y < 2^ s)%Z) by (apply Z.mod_pos_bound; lia).
  assert (E : z = (Z.of_nat h * 2^ s + y)%Z).
  { unfold h, y. rewrite Z2Nat.id by (apply Z.div_pos; lia). rewrite Z.mul_comm. apply Z.div_mod. lia. }
  set (qs := q l t ^ (2 ^ s)). set (x := p_of (Excess z)).
  set (kept := mean s (fun low => q l t ^ Z.to_nat low)).
  set (chosen := mean s (fun low => q l t ^ Z.to_nat low * one (low =? y)%Z)).
  assert (T : Z.to_nat z = (2 ^ s * h + Z.to_nat y)%nat).
  { apply Nat2Z.inj. rewrite Nat2Z.inj_add, Nat2Z.inj_mul, Nat2Z.inj_pow, !Z2Nat.id by lia. change (Z.of_nat 2) with
    2%Z. lia. }
  clearbody y h. assert (Kept : 0 < kept <= 1).
  { split.
    - apply Rlt_le_trans with (q l t ^ Z.to_nat (2^ s)); [apply pow_lt; lra|]. rewrite <- (mean_const s (_ ^ _)).
      apply mean_le. intros low L. replace (Z.to_nat (2^ s)) with (Z.to_nat low + (Z.to_nat (2^ s) - Z.to_nat low))%nat
        by lia.
      rewrite pow_add. rewrite <- (Rmult_1_r (q l t ^ Z.to_nat low)) at 2.
      apply Rmult_le_compat_l; [apply pow_le; lra|]. rewrite <- (pow1 (Z.to_nat (2^ s) - Z.to_nat low)). apply
        pow_incr. lra.
    - rewrite <- (mean_const s 1). apply mean_le. intros low L. rewrite <- (pow1 (Z.to_nat low)). apply pow_incr. lra. }
  set (high := fun n low => expected tail_coin p_of (and_then (heads n (Decay (tail_start t) (2 ^ shift t)))
    (fun high => if_excess l (Excess (high * 2 ^ shift t + low)) (high * 2 ^ shift t + low)%Z))
    (fun found => one (is_value z found))).
  assert (High : forall n low, (0 <= low < 2^ s)%Z ->
    high (Datatypes.S n) low = one (low =? y)%Z * if (h <=? n)%nat then qs ^ h * (1 - qs) * x else 0).
  { intros n low L. unfold high. rewrite expected_then, heads_are, decay_is, Es by lia.
    replace (q l t ^ Z.to_nat (2^ s)) with qs by (unfold qs; f_equal; apply Nat2Z.inj; rewrite Nat2Z.inj_pow; lia).
    rewrite <- (sum_of_one (fun h => qs ^ h * (1 - qs) * x)), scal_sum. apply sum_eq. intros i _.
    rewrite (if_excess_is l) by reflexivity. cbn [is_value].
    destruct (Z.eqb_spec (Z.of_nat i * 2^ s + low) z) as [V|V].
    - assert (Z.of_nat i = Z.of_nat h /\ low = y) as [I ->] by (rewrite E in V; apply (Z.div_mod_unique (2^ s)); lia).
      rewrite V, I, !Z.eqb_refl. unfold x. cbn [one]. ring.
    - destruct (Z.eqb_spec low y) as [->|]; cbn [one]; [|ring].
      destruct (Z.eqb_spec (Z.of_nat i) (Z.of_nat h)) as [I|I]; [exfalso; apply V; rewrite I, E; ring|cbn [one]; ring].
        }
  assert (Limit : (1 - q l t) * q l t ^ Z.to_nat z * (if gaussian l then density l z else 1)
    = chosen * (qs ^ h * (1 - qs) * x) / (1 - (1 - kept))).
  { generalize (low_bits s (q l t) y Q Y) (first_success chosen (1 - kept) ltac:(lra)). fold kept. fold chosen. intros
    A B.
    apply is_series_unique in A, B. rewrite B in A. rewrite T, <- (low_and_high_bits s) by exact Q. fold qs in A |- *.
    rewrite <- A. unfold x, Rdiv. cbn [p_of_tail]. ring. }
  rewrite Limit. apply (is_lim_seq_ext (fun n => expected tail_coin p_of
    (until_some n (proposal (shift t) (Decay (tail_start t)))) (high n))).
  { intros n. unfold beyond. rewrite expected_then. reflexivity. }
  assert (Nothing : expected tail_coin p_of (proposal (shift t) (Decay (tail_start t))) nothing = 1 - kept).
  { rewrite Es, proposal_is by lia. transitivity (mean s (fun low => 1 + -1 * q l t ^ Z.to_nat low)).
    - apply mean_ext. intros low L. rewrite decay_is by lia. cbn [nothing]. ring.
    - rewrite mean_plus, mean_const, mean_scale. unfold kept. ring. }
  apply (first_success_of_attempts tail_coin p_of (fun _ => proposal (shift t) (Decay (tail_start t))) high _ _ (1 -
    kept));
    [|apply (is_lim_seq_ext (fun _ => 1 - kept)); [intros; symmetry; exact Nothing|apply is_lim_seq_const]|lra|
     intros; rewrite Nothing; lra].
  apply is_lim_seq_incr_1, (is_lim_seq_ext (fun n => chosen * if (h <=? n)%nat then qs ^ h * (1 - qs) * x else 0)).
  - intros n. rewrite Es, proposal_is by lia. unfold chosen. rewrite <- mean_scale_right. apply mean_ext. intros low L.
    cbn [some_of]. rewrite decay_is, High by lia. ring.
  - apply is_lim_seq_mult'; [apply is_lim_seq_const|]. apply (limit_of_one (fun h => qs ^ h * (1 - qs) * x)).
Qed.
End Trials.
