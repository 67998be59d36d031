(* The bounds of densities in fixed point hold. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Interval Require Import Tactic.
From Dpnoise Require Import Model Sound Integers.
Import ListNotations.
Open Scope Z_scope.

(* How constants are rounded; for some numbers of limbs this is decided in Tables.v. *)
Record sound_constants (c : constants) : Prop := {
  limbs_positive : 1 <= limbs c;
  ln_2_rounded : (0 <= ln 2 * IZR (unit (limbs c)) - IZR (ln_2 c) <= 1)%R;
  log2_e_rounded : (0 <= / ln 2 * IZR (unit (limbs c)) - IZR (log2_e c) <= 1)%R;
  terms_are : terms c = coefficients (limbs c) }.

Open Scope R_scope.

Lemma down a b : (0 < b)%Z -> 0 <= IZR a / IZR b - IZR (a / b) < 1.
Proof.
  intros H. generalize (Z.div_mod a b ltac:(lia)) (Z.mod_pos_bound a b H). intros E M.
  assert (P : 0 < IZR b) by (apply IZR_lt, H).
  replace (IZR a / IZR b - IZR (a / b)) with (IZR (a mod b) / IZR b).
  - split; [apply Rdiv_le_0_compat; [apply IZR_le; lia|exact P]|]. apply Rlt_div_l; [exact P|].
    rewrite Rmult_1_l. apply IZR_lt. lia.
  - rewrite E at 2. rewrite plus_IZR, mult_IZR. field. lra.
Qed.

Lemma times_is n a b : (0 <= n)%Z -> times n a b = (a * b / unit n)%Z.
Proof. intros H. rewrite times_shifts. apply Z.shiftr_div_pow2. lia. Qed.
Lemma times_positive n a b : (0 <= a)%Z -> (0 <= b)%Z -> (0 <= times n a b)%Z.
Proof. intros A H. rewrite times_shifts. apply Z.shiftr_nonneg, Z.mul_nonneg_nonneg; assumption. Qed.

Section Precision.
Variable c : constants.
Hypothesis C : sound_constants c.
Let B : Z := unit (limbs c).

Lemma unit_positive : (2 <= B)%Z.
Proof.
  unfold B, unit. generalize (limbs_positive c C). intros L. change 2%Z with (2 ^ 1)%Z at 1. apply Z.pow_le_mono_r; lia.
Qed.
Lemma one_positive : 2 <= IZR B. Proof. apply IZR_le, unit_positive. Qed.

Lemma times_down a b : 0 <= IZR a * IZR b / IZR B - IZR (times (limbs c) a b) < 1.
Proof.
  rewrite <- mult_IZR, times_is by (generalize (limbs_positive c C); lia). apply down. generalize unit_positive. lia.
Qed.

(* The coefficients are those of the exponential, rounded down. *)
Definition inverse_factorial (n : nat) : Z := (B / Z.of_nat (fact n))%Z.

Lemma factorial_grows n : (2 ^ Z.of_nat n <= Z.of_nat (fact (S n)))%Z.
Proof.
  induction n as [|n IH]; [reflexivity|]. rewrite Nat2Z.inj_succ, Z.pow_succ_r by lia. change (fact (S (S n))) with
    (S (S n) * fact (S n))%nat. nia.
Qed.

Lemma coefficients_from_are fuel n : let term := (unit (limbs c + 1) / Z.of_nat (fact n))%Z in
  exists N, (N <= fuel)%nat /\ coefficients_from fuel (Z.of_nat n) term = map inverse_factorial (seq n N)
  /\ ((N < fuel)%nat -> inverse_factorial (n + N) = 0%Z).
Proof.
  revert n. induction fuel as [|fuel IH]; intros n term; [exists 0%nat; repeat split; lia|].
  assert (F : (0 < Z.of_nat (fact n))%Z) by (generalize (lt_O_fact n); lia).
  assert (T : (term / 2 ^ 64)%Z = inverse_factorial n).
  { unfold term, inverse_factorial, B, unit. generalize (limbs_positive c C). intros L.
    replace (64 * (limbs c + 1))%Z with (64 * limbs c + 64)%Z by ring. rewrite Z.pow_add_r by lia.
    rewrite Z.div_div by lia. rewrite Z.div_mul_cancel_r by lia. reflexivity. }
  cbn [coefficients_from]. rewrite T. destruct (Z.eqb_spec (inverse_factorial n) 0) as [E|E].
  - exists 0%nat. rewrite Nat.add_0_r. repeat split; [lia|]. intros _. exact E.
  - destruct (IH (S n)) as [N [H [L Z]]]. exists (S N). repeat split; [lia| |].
    + cbn [seq map]. f_equal. rewrite <- L. unfold term. rewrite Z.div_div by lia.
      replace (Z.of_nat n + 1)%Z with (Z.of_nat (S n)) by lia. rewrite <- Nat2Z.inj_mul.
      rewrite (Nat.mul_comm (fact n)). reflexivity.
    + intros G. rewrite <- plus_n_Sm. apply Z. lia.
Qed.

Lemma coefficients_are : exists N, terms c = map inverse_factorial (seq 0 N) /\ inverse_factorial N = 0%Z.
Proof.
  rewrite (terms_are c C). unfold coefficients. generalize (limbs_positive c C). intros L.
  destruct (coefficients_from_are (Z.to_nat (64 * limbs c + 2)) 0) as [N [H [T Z]]]. exists N.
  change (Z.of_nat (fact 0)) with 1%Z in T. rewrite Z.div_1_r in T. split; [exact T|].
  destruct (Nat.eq_dec N (Z.to_nat (64 * limbs c + 2))) as [E|E]; [|apply Z; lia].
  unfold inverse_factorial. apply Z.div_small. split; [generalize unit_positive; lia|].
  generalize (factorial_grows (N - 1)). replace (S (N - 1)) with N by lia. intros G. eapply Z.lt_le_trans; [|exact G].
  unfold B, unit. apply Z.pow_lt_mono_r; lia.
Qed.

(* Horner's rule: the exact tail sums, and the error of the computed ones. *)
Section Horner.
Variables (x : R) (z : Z).
Hypothesis Range : 0 <= x <= ln 2.
Hypothesis Near : 0 <= x * IZR B - IZR z <= 2.
Hypothesis Positive : (0 <= z)%Z.

Definition sums (i k : nat) : R := fold_right (fun m s => s * x + / INR (fact m)) 0 (seq i k).
Definition computed (i k : nat) : Z :=
  fold_right (fun term sum => times (limbs c) sum z + term)%Z 0%Z (map inverse_factorial (seq i k)).

Lemma log_2 : 0 < ln 2 <= 6932 / 10000. Proof. split; interval. Qed.

Lemma step i k a e : 0 <= sums (S i) k <= a -> (0 <= computed (S i) k)%Z ->
  0 <= sums (S i) k * IZR B - IZR (computed (S i) k) <= e ->
  0 <= sums i (S k) <= 6932 / 10000 * a + / INR (fact i) /\ (0 <= computed i (S k))%Z /\
  0 <= sums i (S k) * IZR B - IZR (computed i (S k)) <= 6932 / 10000 * e + 2 * a + 2.
Proof.
  intros A P E. unfold sums, computed in *. cbn [seq map fold_right].
  set (s := fold_right _ 0 _) in *. set (r := fold_right _ 0%Z _) in *. generalize log_2 one_positive. intros L O.
  assert (F : 0 < / INR (fact i)) by (apply Rinv_0_lt_compat, INR_fact_lt_0).
  generalize (times_down r z) (down B (Z.of_nat (fact i)) ltac:(generalize (lt_O_fact i); lia)).
  fold (inverse_factorial i). rewrite <- INR_IZR_INZ. intros T D.
  assert (P' : 0 <= IZR r) by (apply IZR_le, P). assert (Z' : 0 <= IZR z) by (apply IZR_le, Positive).
  split; [nra|]. split.
  { apply Z.add_nonneg_nonneg; [apply times_positive; assumption|].
    unfold inverse_factorial. apply Z.div_pos; [generalize unit_positive; lia|generalize (lt_O_fact i); lia]. }
  rewrite plus_IZR.
  assert (M : 0 <= s * x * IZR B - IZR r * IZR z / IZR B <= 6932 / 10000 * e + 2 * a).
  { replace (s * x * IZR B - IZR r * IZR z / IZR B)
      with (x * (s * IZR B - IZR r) + IZR r / IZR B * (x * IZR B - IZR z)) by (field; lra).
    assert (Q : 0 <= IZR r / IZR B <= a).
    { split; [apply Rdiv_le_0_compat; lra|]. apply Rle_div_l; nra. }
    split; [apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra|].
    apply Rplus_le_compat; [|rewrite Rmult_comm]; apply Rmult_le_compat; lra. }
  replace ((s * x + / INR (fact i)) * IZR B) with (s * x * IZR B + IZR B / INR (fact i)) by (unfold Rdiv; ring). lra.
Qed.

Lemma horner_error N : (0 <= computed 0 N)%Z /\ 0 <= sums 0 N * IZR B - IZR (computed 0 N) <= 19.
Proof.
  assert (Far : forall k i, (2 <= i)%nat -> 0 <= sums i k <= 163 / 100 /\ (0 <= computed i k)%Z /\
    0 <= sums i k * IZR B - IZR (computed i k) <= 172 / 10).
  { induction k as [|k IH]; intros i I; [unfold sums, computed; simpl; repeat split; try lra; lia|].
    destruct (IH (S i) ltac:(lia)) as [A [P E]]. destruct (step i k _ _ A P E) as [A' [P' E']].
    assert (/ INR (fact i) <= 1 / 2).
    { replace (1 / 2) with (/ INR (fact 2)) by (simpl; lra). apply Rinv_le_contravar; [apply INR_fact_lt_0|].
      apply le_INR, fact_le, I. }
    repeat split; lra || exact P'. }
  destruct N as [|[|N]]; [unfold sums, computed; simpl; split; [lia|lra]| |].
  - assert (A : 0 <= sums 1 0 <= 0) by (unfold sums; simpl; lra).
    assert (E : 0 <= sums 1 0 * IZR B - IZR (computed 1 0) <= 0) by (unfold sums, computed; simpl; lra).
    destruct (step 0 0 0 0 A ltac:(unfold computed; simpl; lia) E) as [_ [P' E']]. split; [exact P'|lra].
  - destruct (Far N 2%nat ltac:(lia)) as [A [P E]]. destruct (step 1 N _ _ A P E) as [A1 [P1 E1]].
    destruct (step 0 (S N) _ _ A1 P1 E1) as [_ [P0 E0]]. change (INR (fact 1)) with 1 in *.
    split; [exact P0|lra].
Qed.

Lemma sums_are i k : sums i (S k) = sum_f_R0 (fun m => x ^ m / INR (fact (i + m))) k.
Proof.
  revert i. induction k as [|k IH]; intros i.
  - unfold sums. simpl. rewrite Nat.add_0_r. lra.
  - change (sums i (S (S k))) with (sums (S i) (S k) * x + / INR (fact i)). rewrite IH.
    rewrite (decomp_sum _ (S k)) by lia. cbn [pow pred]. rewrite Nat.add_0_r.
    rewrite (Rmult_comm _ x), scal_sum. unfold Rdiv at 2. rewrite Rmult_1_l, Rplus_comm. f_equal. apply sum_eq.
    intros m _.
    rewrite <- plus_n_Sm. change (S i + m)%nat with (S (i + m)). unfold Rdiv. ring.
Qed.

Lemma series_is_cut N : 0 <= exp x - sums 0 (S N) <= 2 / INR (fact (S N)).
Proof.
  rewrite sums_are. destruct (Req_dec x 0) as [->|Nz].
  - rewrite exp_0. replace (sum_f_R0 _ N) with 1.
    + split; [lra|]. rewrite Rminus_eq_0. apply Rdiv_le_0_compat; [lra|apply INR_fact_lt_0].
    + induction N as [|N IH]; [simpl; lra|]. rewrite tech5, <- IH. rewrite pow_i by lia. lra.
  - destruct (Taylor_Lagrange exp N 0 x) as [y [Y T]]; [lra| |].
    { intros t _ k _. destruct k; [exact I|]. eexists. apply (is_derive_n_exp (S k)). }
    rewrite Rminus_0_r in T. rewrite (sum_eq _ (fun m => x ^ m / INR (fact (0 + m)))) in T.
    2: { intros m _. rewrite (is_derive_n_unique exp m 0 (exp 0)) by apply is_derive_n_exp. rewrite exp_0. apply
        Rmult_1_r. }
    rewrite T, (is_derive_n_unique exp _ y (exp y)) by apply is_derive_n_exp.
    replace (_ + _ - _) with (x ^ S N * exp y / INR (fact (S N))) by (unfold Rdiv; ring).
    assert (E : 0 < exp y <= 2).
    { split; [apply exp_pos|]. rewrite <- (exp_ln 2) by lra. apply Raux.exp_le. lra. }
    assert (W : 0 <= x ^ S N <= 1) by (generalize log_2; intros; split; [apply pow_le; lra|rewrite <- (pow1 (S N));
      apply pow_incr; lra]).
    assert (F : 0 < / INR (fact (S N))) by (apply Rinv_0_lt_compat, INR_fact_lt_0).
    unfold Rdiv. split; [apply Rmult_le_pos; [apply Rmult_le_pos|]; lra|]. apply Rmult_le_compat_r; [lra|nra].
Qed.
End Horner.

Definition exp2 (t : R) : R := exp (- t * ln 2).

(* 2^-r, too small by less than 12 ulps; the code allows for 16. *)
Lemma exp2_neg_is_near t : (0 <= t)%Z -> let '(k, v) := exp2_neg c t in
  (0 <= k)%Z /\ (0 <= v)%Z /\ 0 <= exp2 (IZR t / IZR B) * 2 ^ Z.to_nat k * IZR B - IZR v <= 12.
Proof.
  intros T. unfold exp2_neg. fold B. generalize unit_positive one_positive log_2. intros U O L.
  set (r := (t mod B)%Z). set (k := (t / B)%Z). assert (M : (0 <= r < B)%Z) by (apply Z.mod_pos_bound; lia).
  assert (K : (0 <= k)%Z) by (apply Z.div_pos; lia). split; [exact K|].
  set (z := times (limbs c) (B - r) (ln_2 c)). destruct coefficients_are as [N [-> Last]].
  set (x := (1 - IZR r / IZR B) * ln 2).
  assert (R1 : 0 <= IZR r / IZR B < 1).
  { split; [apply Rdiv_le_0_compat; [apply IZR_le|]; lra || lia|]. apply Rlt_div_l; [lra|]. rewrite Rmult_1_l.
    apply IZR_lt. lia. }
  assert (Range : 0 <= x <= ln 2) by (unfold x; split; nra).
  assert (Log : (0 <= ln_2 c)%Z).
  { generalize (ln_2_rounded c C). fold B. intros H. apply le_IZR. assert (69 / 100 < ln 2) by interval. nra. }
  assert (Near : 0 <= x * IZR B - IZR z <= 2).
  { generalize (times_down (B - r) (ln_2 c)) (ln_2_rounded c C). fold B. fold z. rewrite minus_IZR. intros D H.
    replace (x * IZR B) with ((1 - IZR r / IZR B) * (ln 2 * IZR B)) by (unfold x; ring).
    replace ((IZR B - IZR r) * IZR (ln_2 c) / IZR B) with ((1 - IZR r / IZR B) * IZR (ln_2 c)) in D by (field; lra).
    nra. }
  assert (Positive : (0 <= z)%Z) by (apply times_positive; lia).
  destruct N as [|N].
  { exfalso. unfold inverse_factorial in Last. change (Z.of_nat (fact 0)) with 1%Z in Last. rewrite Z.div_1_r in Last.
    lia. }
  generalize (horner_error x z Range Near Positive (S N)) (series_is_cut x z Range Near N). unfold computed.
  set (s := fold_right _ 0%Z _).
  intros [Sp Sum] Cut. assert (F : 0 < INR (fact (S N))) by apply INR_fact_lt_0.
  assert (Tiny : 2 / INR (fact (S N)) * IZR B <= 2).
  { replace (2 / INR (fact (S N)) * IZR B) with (2 * (IZR B / INR (fact (S N)))) by (field; lra).
    generalize (down B (Z.of_nat (fact (S N))) ltac:(generalize (lt_O_fact (S N)); lia)).
    fold (inverse_factorial (S N)).
    rewrite Last, <- INR_IZR_INZ. lra. }
  assert (V : exp2 (IZR t / IZR B) * 2 ^ Z.to_nat k = exp x / 2).
  { rewrite (Z.div_mod t B) by lia. fold r. fold k. unfold exp2. rewrite plus_IZR, mult_IZR.
    rewrite <- (exp_ln (2 ^ Z.to_nat k)) by (apply pow_lt; lra). rewrite ln_pow by lra.
    rewrite INR_IZR_INZ, Z2Nat.id by exact K. rewrite <- exp_plus.
    rewrite <- (exp_ln (exp x / 2)) by (apply Rdiv_lt_0_compat; [apply exp_pos|lra]).
    rewrite ln_div, ln_exp by (apply exp_pos || lra).
    f_equal. unfold x. field. lra. }
  rewrite V. generalize (down s 2 ltac:(lia)). intros Half.
  assert (Whole : 0 <= exp x * IZR B - IZR s <= 21) by nra.
  split; [apply Z.div_pos; lia|lra].
Qed.

(* The rate: f(x) = 2^(-rate x), or 2^(-rate x^2). *)
Section Density.
Variable l : law.
Hypothesis Numerator : (1 <= numerator l)%Z.
Hypothesis Denominator : (1 <= denominator l)%Z.
Definition slope : R := IZR (dividend l 1) / IZR (divisor l).

Lemma rate_is_near : let '(rate, error) := rate_of c l in
  (0 <= rate)%Z /\ (0 <= error)%Z /\ 0 <= slope / ln 2 * IZR B - IZR rate <= IZR error.
Proof.
  unfold rate_of. fold B. generalize unit_positive one_positive log_2 (log2_e_rounded c C). fold B. intros U O L E.
  set (inverse := (denominator l * B / numerator l)%Z). assert (I : (0 <= inverse)%Z) by (apply Z.div_pos; nia).
  assert (N : 1 <= IZR (numerator l)) by (apply IZR_le, Numerator).
  assert (Ln : / ln 2 <= 145 / 100) by interval. assert (Lp : 0 < / ln 2) by (apply Rinv_0_lt_compat; lra).
  assert (Log : (0 <= log2_e c)%Z).
  { apply le_IZR. assert (1 < / ln 2) by interval. nra. }
  set (ratio := IZR (denominator l) / IZR (numerator l)).
  assert (Inv : 0 <= ratio * IZR B - IZR inverse < 1).
  { generalize (down (denominator l * B) (numerator l) ltac:(lia)). fold inverse. rewrite mult_IZR.
    replace (IZR (denominator l) * IZR B / IZR (numerator l)) with (ratio * IZR B) by (unfold ratio; field; lra).
    exact (fun x => x). }
  (* A factor that is too small by e ulps. *)
  assert (Last : forall real factor e, (0 <= factor)%Z -> (0 <= e)%Z -> 0 <= real * IZR B - IZR factor <= IZR e ->
    let rate := times (limbs c) factor (log2_e c) in
    (0 <= rate)%Z /\ (0 <= 2 * e + factor / B + 3)%Z /\ 0 <= real / ln 2 * IZR B - IZR rate <= IZR (2 * e + factor / B
        + 3)).
  { intros real factor e F Ep H rate.
    assert (Q : (0 <= factor / B)%Z) by (apply Z.div_pos; lia).
    generalize (times_down factor (log2_e c)) (down factor B ltac:(lia)). fold rate. intros D W.
    split; [apply times_positive; assumption|]. split; [lia|].
    rewrite !plus_IZR, mult_IZR. assert (F' : 0 <= IZR factor) by (apply IZR_le, F).
    assert (0 <= IZR e) by (apply IZR_le, Ep).
    assert (P : 0 <= IZR factor / IZR B) by (apply Rdiv_le_0_compat; lra).
    assert (M : 0 <= real / ln 2 * IZR B - IZR factor * IZR (log2_e c) / IZR B <= 145 / 100 * IZR e + IZR factor / IZR
        B).
    { replace (real / ln 2 * IZR B - IZR factor * IZR (log2_e c) / IZR B)
        with (/ ln 2 * (real * IZR B - IZR factor) + IZR factor / IZR B * (/ ln 2 * IZR B - IZR (log2_e c))) by
            (field; lra).
      split; [apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra|]. apply Rplus_le_compat.
      - apply Rmult_le_compat; lra.
      - rewrite <- (Rmult_1_r (IZR factor / IZR B)) at 2. apply Rmult_le_compat_l; lra. }
    lra. }
  unfold slope, dividend, divisor. destruct (gaussian l).
  - set (square := times (limbs c) inverse inverse).
    assert (Sq : (0 <= square)%Z) by (apply times_positive; assumption).
    assert (Q : (0 <= inverse / B)%Z) by (apply Z.div_pos; lia).
    replace (IZR ((1 * denominator l) ^ 2) / IZR (2 * numerator l ^ 2)) with (ratio * ratio / 2).
    2: { rewrite Z.mul_1_l, !Z.pow_2_r, !mult_IZR. unfold ratio. field. lra. }
    apply Last; [apply Z.div_pos; lia|lia|].
    generalize (times_down inverse inverse) (down square 2 ltac:(lia)) (down inverse B ltac:(lia)). fold square.
    intros D H W.
    rewrite plus_IZR, mult_IZR. assert (I' : 0 <= IZR inverse) by (apply IZR_le, I).
    assert (P : 0 <= IZR inverse / IZR B) by (apply Rdiv_le_0_compat; lra).
    assert (M : 0 <= ratio * ratio * IZR B - IZR inverse * IZR inverse / IZR B <= 2 * (IZR inverse / IZR B) + 1).
    { replace (ratio * ratio * IZR B - IZR inverse * IZR inverse / IZR B)
        with ((ratio * IZR B - IZR inverse) * ((ratio * IZR B + IZR inverse) / IZR B)) by (field; lra).
      assert (T : 0 <= (ratio * IZR B + IZR inverse) / IZR B <= 2 * (IZR inverse / IZR B) + 1).
      { split; [apply Rdiv_le_0_compat; lra|]. apply Rle_div_l; [lra|].
        replace ((2 * (IZR inverse / IZR B) + 1) * IZR B) with (2 * IZR inverse + IZR B) by (field; lra). lra. }
      split; [apply Rmult_le_pos; lra|]. nra. }
    replace (ratio * ratio / 2 * IZR B) with (ratio * ratio * IZR B / 2) by field. lra.
  - rewrite Z.mul_1_l. apply Last; [exact I|lia|]. fold ratio. simpl. lra.
Qed.

(* Bounds of f's powers hold. *)
Theorem power_is_between a b : (0 <= a)%Z -> (0 <= b)%Z -> let '(low, high) := power c l a b in
  IZR low <= exp (- slope * IZR (a * b)) * IZR B <= IZR high /\ ((a * b)%Z = 0%Z \/ (low < high)%Z).
Proof.
  intros A A'. unfold power. generalize rate_is_near. destruct (rate_of c l) as [rate error]. intros [R0 [E0 R]].
  generalize unit_positive one_positive log_2. intros U O L.
  set (t := (rate * a * b)%Z). assert (T : (0 <= t)%Z) by (apply Z.mul_nonneg_nonneg; nia).
  generalize (exp2_neg_is_near t T). destruct (exp2_neg c t) as [k v]. intros [K [V N]]. fold B.
  destruct ((a =? 0)%Z || (b =? 0)%Z)%bool eqn:Zero.
  { replace (a * b)%Z with 0%Z by (apply orb_prop in Zero; rewrite !Z.eqb_eq in Zero; nia).
    rewrite Rmult_0_r, exp_0. split; [lra|left; reflexivity]. }
  set (value := (v / 2 ^ k)%Z).
  assert (P : (1 <= 2 ^ k)%Z) by (assert (0 < 2 ^ k)%Z by (apply Z.pow_pos_nonneg; lia); lia).
  assert (P' : 1 <= IZR (2 ^ k)) by (apply IZR_le, P).
  generalize (down v (2 ^ k) ltac:(lia)). fold value. intros D.
  assert (Value : (0 <= value)%Z) by (apply Z.div_pos; lia). assert (Value' : 0 <= IZR value) by (apply IZR_le, Value).
  (* 2^-t *)
  set (near := exp2 (IZR t / IZR B)). assert (Near : 0 <= near * IZR B - IZR value <= 13).
  { replace (2 ^ Z.to_nat k) with (IZR (2 ^ k)) in N by (rewrite pow_IZR, Z2Nat.id by lia; reflexivity). fold near in N.
    assert (X : 0 <= near * IZR B - IZR v / IZR (2 ^ k) <= 12).
    { replace (near * IZR B - IZR v / IZR (2 ^ k)) with ((near * IZR (2 ^ k) * IZR B - IZR v) / IZR (2 ^ k)) by
        (field; lra).
      split; [apply Rdiv_le_0_compat; lra|]. apply Rle_div_l; nra. }
    lra. }
  set (ab := (a * b)%Z) in *. assert (AB : (0 <= ab)%Z) by (apply Z.mul_nonneg_nonneg; assumption).
  assert (AB' : 0 <= IZR ab) by (apply IZR_le, AB).
  (* The exact exponent is a little larger. *)
  set (more := (slope / ln 2 * IZR B - IZR rate) * IZR ab).
  assert (More : 0 <= more <= IZR (ab * error)).
  { rewrite mult_IZR. unfold more. split; [apply Rmult_le_pos; lra|]. rewrite (Rmult_comm (IZR ab)).
    apply Rmult_le_compat_r; lra. }
  assert (Split : exp (- slope * IZR ab) = near * exp (- (more / IZR B * ln 2))).
  { unfold near, exp2. rewrite <- exp_plus. f_equal. unfold more, t.
    replace (rate * a * b)%Z with (rate * ab)%Z by (unfold ab; ring).
    rewrite mult_IZR. field. lra. }
  rewrite Split. assert (Np : 0 < near <= 1).
  { unfold near, exp2. split; [apply exp_pos|]. rewrite <- exp_0. apply Raux.exp_le.
    assert (0 <= IZR t / IZR B) by (apply Rdiv_le_0_compat; [apply IZR_le, T|lra]). nra. }
  set (y := more / IZR B * ln 2). assert (Y : 0 <= y * IZR B <= more).
  { replace (y * IZR B) with (more * ln 2) by (unfold y; field; lra). split; [apply Rmult_le_pos; lra|]. nra. }
  assert (Y0 : 0 <= y) by (apply Rmult_le_reg_r with (IZR B); lra).
  assert (Drop : 1 - y <= exp (- y) <= 1).
  { split; [generalize (exp_ineq1_le (- y)); lra|]. rewrite <- exp_0. apply Raux.exp_le. lra. }
  assert (Bound : near * IZR B - more <= near * exp (- y) * IZR B <= near * IZR B).
  { split; [|nra]. apply Rle_trans with (near * (1 - y) * IZR B); [nra|]. apply Rmult_le_compat_r; [lra|].
    apply Rmult_le_compat_l; lra. }
  fold ab. split; [|right; assert (0 <= ab * error)%Z by (apply Z.mul_nonneg_nonneg; assumption); lia].
  rewrite plus_IZR, plus_IZR. split; [|lra].
  destruct (Z.max_spec 0 (value - (ab * error + 17))) as [[_ ->]|[_ ->]].
  - rewrite minus_IZR, plus_IZR. lra.
  - assert (0 < exp (- y)) by apply exp_pos. apply Rmult_le_pos; [|lra]. apply Rmult_le_pos; lra.
Qed.
End Density.
End Precision.
