(* A uniform whole number below n, from 128 bits at a time: uniform.rs. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Coquelicot Require Import Coquelicot.
From Dpnoise Require Import Words.
Import ListNotations.
Open Scope Z_scope.

Definition wide : Z := 2 ^ 128.

(* The model: the whole number and the words that are left, None where words do not suffice. The product of U and n is
   floor + (digit + rest) / 2^128, where further words decide only about a carry. *)
Fixpoint carried (n floor digit : Z) (words : list Z) : option (Z * list Z) :=
  match words with
  | [] => None
  | word :: words =>
      let '(whole, fraction) := (word * n / wide, word * n mod wide) in
      let '(carry, sum) := ((digit + whole) / wide, (digit + whole) mod wide) in
      if (sum =? wide - 1) && (wide <=? fraction + (n - 1)) then carried n (floor + carry) fraction words
      else Some (floor + carry, words)
  end.
Definition uniform_below (n : Z) (words : list Z) : option (Z * list Z) :=
  match words with
  | [] => None
  | word :: words => carried n (word * n / wide) (word * n mod wide) words
  end.

(* The words as the digits of one number: U lies from number / size to (number + 1) / size. *)
Definition number_from (u : Z) (words : list Z) : Z := fold_left (fun u word => u * wide + word) words u.
Definition number : list Z -> Z := number_from 0.
Definition size (words : list Z) : Z := wide ^ Z.of_nat (length words).
Definition are_words (words : list Z) : Prop := List.Forall (fun word => 0 <= word < wide) words.

(* v is the whole part of U n for all U that begin with u, of which P is the unit; or no whole number is. *)
Definition settles (n P u v : Z) : Prop := v * P <= u * n /\ (u + 1) * n <= (v + 1) * P.
Definition unsettled (n P u : Z) : Prop := exists c, u * n < c * P < (u + 1) * n.

Lemma size_S word words : size (word :: words) = wide * size words.
Proof. unfold size. cbn [length]. rewrite Nat2Z.inj_succ, Z.pow_succ_r by lia. reflexivity. Qed.

Lemma settles_for_good n v words : 1 <= n -> are_words words -> forall P u, settles n P u v ->
  settles n (P * size words) (number_from u words) v.
Proof.
  intros N W. induction W as [|w words R _ IH]; intros P u S; [unfold size; simpl; rewrite Z.mul_1_r; exact S|].
  rewrite size_S, Z.mul_assoc. apply IH. unfold settles in *.
  assert (0 < wide) by reflexivity. nia.
Qed.

Lemma carried_is_right n words : 1 <= n < wide -> are_words words -> forall P u floor digit,
  wide <= P -> 0 <= digit < wide -> u * n = floor * P + (P - wide) + digit ->
  (words <> [] \/ (floor + 1) * P < (u + 1) * n) ->
  match carried n floor digit words with
  | Some (v, _) => settles n (P * size words) (number_from u words) v
  | None => unsettled n (P * size words) (number_from u words)
  end.
Proof.
  intros N W. induction W as [|w words R W IH]; intros P u floor digit HP HD E O; cbn [carried].
  - destruct O as [O|O]; [congruence|]. exists (floor + 1). unfold size. cbn [length number_from fold_left Z.of_nat].
    rewrite Z.pow_0_r, Z.mul_1_r. nia.
  - assert (Wd : 0 < wide) by reflexivity.
    generalize (Z.div_mod (w * n) wide ltac:(lia)) (Z.mod_pos_bound (w * n) wide Wd).
    assert (B : 0 <= w * n / wide < wide) by (split; [apply Z.div_pos; nia|apply Z.div_lt_upper_bound; nia]).
    revert B. generalize (w * n / wide) (w * n mod wide). intros whole fraction B Ew F.
    generalize (Z.div_mod (digit + whole) wide ltac:(lia)) (Z.mod_pos_bound (digit + whole) wide Wd).
    assert (C : 0 <= (digit + whole) / wide <= 1)
      by (split; [apply Z.div_pos; lia|apply Z.lt_succ_r, Z.div_lt_upper_bound; lia]).
    revert C. generalize ((digit + whole) / wide) ((digit + whole) mod wide). intros carry sum C Es S.
    rewrite size_S, Z.mul_assoc. cbn [number_from fold_left]. fold (number_from (u * wide + w) words).
    assert (U : (u * wide + w) * n = floor * (P * wide) + (P - wide + carry * wide + sum) * wide + fraction).
    { transitivity (u * n * wide + w * n); [ring|]. rewrite E, Ew. replace whole with (wide * carry + sum - digit) by
      lia.
      ring. }
    assert (Q : wide * wide <= P * wide) by (apply Z.mul_le_mono_nonneg_r; lia).
    assert (wide <= wide * wide) by (unfold wide; lia).
    assert (T : 0 <= sum * wide <= (wide - 1) * wide) by (split; [|apply Z.mul_le_mono_nonneg_r]; lia).
    assert (O' : sum <> wide - 1 -> sum * wide <= (wide - 2) * wide) by (intros; apply Z.mul_le_mono_nonneg_r; lia).
    assert (carry = 0 \/ carry = 1) as Two by lia.
    destruct (Z.eqb_spec sum (wide - 1)) as [Full|Not], (Z.leb_spec wide (fraction + (n - 1))) as [Over|Under];
      cbn [andb]; [apply IH|apply settles_for_good..]; try exact W; try lia; destruct Two as [-> | ->]; subst; unfold
        settles; lia.
Qed.

Theorem uniform_below_is_right n words : 1 <= n < wide -> are_words words -> (2 <= length words)%nat ->
  match uniform_below n words with
  | Some (v, _) => settles n (size words) (number words) v
  | None => unsettled n (size words) (number words)
  end.
Proof.
  intros N W L. destruct words as [|w words]; [simpl in L; lia|]. inversion W as [|? ? R W']; subst. rewrite size_S.
  unfold number. cbn [number_from fold_left uniform_below]. fold (number_from (0 * wide + w) words).
  assert (Wd : 0 < wide) by reflexivity.
  apply carried_is_right; try assumption; try lia; [apply Z.mod_pos_bound, Wd| |left; destruct words; simpl in L;
    [lia|discriminate]].
  rewrite Z.mul_0_l, Z.add_0_l. rewrite (Z.div_mod (w * n) wide) at 1 by lia. ring.
Qed.

(* The mean over k words. *)
Fixpoint draws (k : nat) (f : list Z -> R) : R :=
  match k with O => f [] | S k => mean 128 (fun word => draws k (fun words => f (word :: words))) end.

Open Scope R_scope.

Lemma draws_of_number k f : draws k (fun words => f (number words)) = mean (128 * k) f.
Proof.
  cut (forall u, draws k (fun words => f (number_from u words)) = mean (128 * k) (fun v => f (u * 2^ (128 * k) + v)%Z)).
  { intros H. unfold number. rewrite H. reflexivity. }
  induction k as [|k IH]; intros u; cbn [draws].
  - change (f u = f (u * 1 + 0)%Z). f_equal. lia.
  - replace (128 * S k)%nat with (128 * k + 128)%nat by lia. rewrite mean_split. apply mean_ext. intros w _.
    etransitivity; [exact (IH (u * wide + w)%Z)|]. apply mean_ext. intros v _. f_equal.
    rewrite Nat2Z.inj_add, Z.pow_add_r by lia. change (2 ^ Z.of_nat 128)%Z with wide. ring.
Qed.

Lemma draws_agree k : forall f g, (forall words, length words = k -> are_words words -> f words = g words) ->
  draws k f = draws k g.
Proof.
  induction k as [|k IH]; intros f g H; cbn [draws]; [apply H; [reflexivity|constructor]|].
  apply mean_ext. intros w W. apply IH. intros words L R. apply H; [simpl; congruence|]. constructor; [exact W|exact R].
Qed.

Definition gives (v : Z) (result : option (Z * list Z)) : bool :=
  match result with Some (found, _) => (found =? v)%Z | None => false end.

(* The bits that k words have, all of which settle the same numbers. *)
Lemma size_is words : size words = 2^ (128 * length words).
Proof. unfold size, wide. rewrite <- Z.pow_mul_r by lia. f_equal. lia. Qed.

Lemma given_where_settled n v words : (1 <= n < wide)%Z -> are_words words -> (2 <= length words)%nat ->
  gives v (uniform_below n words)
  = ((- (- (v * size words) / n) <=? number words) && (number words <? (v + 1) * size words / n))%Z%bool.
Proof.
  intros N W L. generalize (uniform_below_is_right n words N W L). unfold gives, settles, unsettled.
  assert (P : (0 < size words)%Z) by (apply Z.pow_pos_nonneg; [reflexivity|lia]).
  set (P' := size words) in *. set (u := number words).
  generalize (Z.div_mod (- (v * P')) n ltac:(lia)) (Z.mod_pos_bound (- (v * P')) n ltac:(lia)).
  generalize (Z.div_mod ((v + 1) * P') n ltac:(lia)) (Z.mod_pos_bound ((v + 1) * P') n ltac:(lia)).
  generalize (- (v * P') / n)%Z (- (v * P') mod n)%Z ((v + 1) * P' / n)%Z ((v + 1) * P' mod n)%Z.
  intros a b c d E1 B1 E2 B2. assert (U1 : (- a <= u <-> v * P' <= u * n)%Z) by nia.
  assert (U2 : (u < c <-> (u + 1) * n <= (v + 1) * P')%Z) by nia.
  destruct (uniform_below n words) as [[x rest]|]; intros H; symmetry.
  - destruct (Z.eqb_spec x v) as [->|D].
    + apply andb_true_iff. rewrite Z.leb_le, Z.ltb_lt, U1, U2. exact H.
    + apply not_true_iff_false. rewrite andb_true_iff, Z.leb_le, Z.ltb_lt, U1, U2. intros G.
      assert (x < v + 1 /\ v < x + 1)%Z by (split; apply Zmult_lt_reg_r with P'; lia). lia.
  - destruct H as [y Y]. apply not_true_iff_false. rewrite andb_true_iff, Z.leb_le, Z.ltb_lt, U1, U2. intros G.
    assert (v < y /\ y < v + 1)%Z by (split; apply Zmult_lt_reg_r with P'; lia). lia.
Qed.

(* With k words every value has a probability that is below 1 / n by at most 2 / 2^(128 k). *)
Lemma uniform_below_with_words n v k : (1 <= n < wide)%Z -> (0 <= v < n)%Z -> (2 <= k)%nat ->
  / IZR n - 2 / IZR (2^ (128 * k)) <= draws k (fun words => one (gives v (uniform_below n words))) <= / IZR n.
Proof.
  intros N V K. set (P := 2^ (128 * k)). set (low := (- (- (v * P) / n))%Z). set (high := ((v + 1) * P / n)%Z).
  rewrite (draws_agree k _ (fun words => one ((low <=? number words)%Z && (number words <? high)%Z))).
  2: { intros words L W. f_equal. rewrite given_where_settled by (assumption || lia). rewrite size_is, L. reflexivity. }
  rewrite (draws_of_number k (fun u => one ((low <=? u)%Z && (u <? high)%Z))).
  assert (HP : (0 < P)%Z) by apply pow_positive.
  assert (HPn : (wide * wide <= P)%Z).
  { unfold P, wide. rewrite <- Z.pow_add_r by lia. apply Z.pow_le_mono_r; lia. }
  generalize (Z.div_mod (- (v * P)) n ltac:(lia)) (Z.mod_pos_bound (- (v * P)) n ltac:(lia)).
  generalize (Z.div_mod ((v + 1) * P) n ltac:(lia)) (Z.mod_pos_bound ((v + 1) * P) n ltac:(lia)).
  intros E1 B1 E2 B2.
  assert (W1 : (v * P <= low * n < v * P + n)%Z) by (unfold low; lia).
  assert (W2 : ((v + 1) * P - n < high * n <= (v + 1) * P)%Z) by (unfold high; lia).
  clearbody low high. clear E1 B1 E2 B2.
  assert (Order : (0 <= low <= high)%Z) by (split; [nia|]; apply Z.lt_succ_r; nia).
  assert (Top : (high <= P)%Z) by nia.
  rewrite (mean_ext _ _ (fun u => one (u <? high)%Z + -1 * one (u <? low)%Z)).
  2: { intros u _. destruct (Z.leb_spec low u), (Z.ltb_spec u low), (Z.ltb_spec u high); simpl; lra || lia. }
  rewrite mean_plus, mean_scale, !mean_below by (fold P; lia). fold P.
  apply IZR_lt in HP. assert (N' : 1 <= IZR n) by (apply IZR_le; lia).
  assert (W : (P - 2 * n <= (high - low) * n <= P)%Z) by lia. destruct W as [WL WH]. apply IZR_le in WL, WH.
  rewrite minus_IZR, !mult_IZR, minus_IZR in WL. rewrite mult_IZR, minus_IZR in WH.
  replace (IZR high / IZR P + -1 * (IZR low / IZR P)) with ((IZR high - IZR low) * IZR n * (/ IZR n * / IZR P))
    by (field; lra).
  replace (/ IZR n - 2 / IZR P) with ((IZR P - 2 * IZR n) * (/ IZR n * / IZR P)) by (field; lra).
  assert (0 <= / IZR n * / IZR P) by (apply Rlt_le, Rmult_lt_0_compat; apply Rinv_0_lt_compat; lra).
  split; [apply Rmult_le_compat_r; lra|]. apply Rle_trans with (IZR P * (/ IZR n * / IZR P));
    [apply Rmult_le_compat_r; lra|right; field; lra].
Qed.

(* Every value from 0 to n - 1 has the probability 1 / n, exactly, in the limit of all words. *)
Theorem uniform_below_is_uniform n v : (1 <= n < wide)%Z -> (0 <= v < n)%Z ->
  is_lim_seq (fun k => draws k (fun words => one (gives v (uniform_below n words)))) (/ IZR n).
Proof.
  intros N V. apply is_lim_seq_incr_n with 2%nat.
  apply (is_lim_seq_le_le (fun k => / IZR n - 2 * (1/2) ^ (128 * (k + 2))) _ (fun _ => / IZR n)).
  - intros k. generalize (uniform_below_with_words n v (k + 2) N V ltac:(lia)).
    replace (2 / IZR (2^ (128 * (k + 2)))) with (2 * (1/2) ^ (128 * (k + 2))); [exact (fun x => x)|].
    unfold Rdiv. rewrite <- (pow_IZR 2), Rmult_1_l, pow_inv. reflexivity.
  - replace (Finite (/ IZR n)) with (Rbar_plus (/ IZR n) (Rbar_opp (2 * 0))) by (simpl; f_equal; ring).
    apply is_lim_seq_minus'; [apply is_lim_seq_const|]. apply is_lim_seq_mult'; [apply is_lim_seq_const|].
    apply (is_lim_seq_subseq (fun k => (1/2) ^ k) 0 (fun k => 128 * (k + 2))%nat).
    + apply eventually_subseq. intros. lia.
    + apply is_lim_seq_geom. rewrite Rabs_pos_eq; lra.
  - apply is_lim_seq_const.
Qed.
