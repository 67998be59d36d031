(* Reports of one of k values are independent and have exactly their probabilities, where words suffice. *)
From Coq Require Import Reals ZArith List Bool Lia Lra Psatz.
From Dpnoise Require Import Words CoinsModel Coins.
Import ListNotations.
Open Scope R_scope.

(* Sums over the values 0, ..., k - 1. *)
Definition total (k : Z) (f : Z -> R) : R := fold_right Rplus 0 (each (Z.to_nat k) f).

Lemma mean_of_total k n : forall g : Z -> Z -> R,
  mean k (fun w => fold_right Rplus 0 (each n (fun v => g v w))) = fold_right Rplus 0 (each n (fun v => mean k (g v))).
Proof.
  induction n as [|n IH]; intros g; [apply (mean_const k 0)|]. rewrite each_S. cbn [fold_right].
  rewrite <- (IH (fun v => g (v + 1)%Z)), <- mean_plus. apply mean_ext. intros w _. rewrite each_S. reflexivity.
Qed.

Lemma select n : forall (f : Z -> R) x, fold_right Rplus 0 (each n (fun v => f v * one (x =? v)%Z))
  = if ((0 <=? x) && (x <? Z.of_nat n))%Z then f x else 0.
Proof.
  induction n as [|n IH]; intros f x; [|rewrite each_S; cbn [fold_right]].
  - destruct (Z.leb_spec 0 x), (Z.ltb_spec x (Z.of_nat 0)); reflexivity || lia.
  - rewrite (each_ext n _ (fun v => f (v + 1)%Z * one (x - 1 =? v)%Z)).
    + rewrite (IH (fun v => f (v + 1)%Z)), Z.sub_add.
      destruct (Z.eqb_spec x 0), (Z.leb_spec 0 (x - 1)), (Z.ltb_spec (x - 1) (Z.of_nat n)), (Z.leb_spec 0 x),
        (Z.ltb_spec x (Z.of_nat (S n))); try lia; subst; simpl; ring.
    + intros v _. do 2 f_equal. destruct (Z.eqb_spec x (v + 1)), (Z.eqb_spec (x - 1) v); reflexivity || lia.
Qed.

Lemma total_select k f x : (0 <= x < k)%Z -> total k (fun v => f v * one (x =? v)%Z) = f x.
Proof.
  intros X. unfold total. rewrite select, Z2Nat.id by lia.
  destruct (Z.leb_spec 0 x), (Z.ltb_spec x k); reflexivity || lia.
Qed.

Lemma total_affine k a c f : (0 <= k)%Z -> total k (fun v => a * f v + c) = a * total k f + IZR k * c.
Proof.
  intros K. unfold total. rewrite <- (Z2Nat.id k K) at 3. rewrite <- INR_IZR_INZ. revert f.
  induction (Z.to_nat k) as [|n IH]; intros f; [simpl; ring|]. rewrite !each_S. cbn [fold_right].
  rewrite (IH (fun v => f (v + 1)%Z)), S_INR. ring.
Qed.

Lemma total_constant k c : (0 <= k)%Z -> total k (fun _ => c) = IZR k * c.
Proof.
  intros K. transitivity (total k (fun v => 0 * 0 + c)); [|rewrite (total_affine k 0 c (fun _ => 0)) by exact K; ring].
  unfold total. f_equal. apply each_ext. intros. ring.
Qed.

Section Index.
Variables (b : nat) (k : Z).
Hypothesis range : (0 < k <= 2^ b)%Z.

Lemma interval_of_value v word : (0 <= v < k)%Z -> let c := (((v + 1) * (2^ b mod k) + k - 1) / k)%Z in
  negb (is_rejected b k word) && (value_of b k word =? v)%Z
    = (v * (2^ b / k) + c <=? word)%Z && (word <? (v + 1) * (2^ b / k) + c)%Z
  /\ (0 <= c <= 2^ b mod k)%Z.
Proof.
  intros V. unfold is_rejected, value_of.
  generalize (Z.div_mod (2^ b) k ltac:(lia)) (Z.mod_pos_bound (2^ b) k ltac:(lia)) (pow_positive b).
  set (r := (2^ b)%Z) in *. set (q := (r / k)%Z). set (t := (r mod k)%Z). intros E T P.
  generalize (Z.div_mod ((v + 1) * t + k - 1) k ltac:(lia)) (Z.mod_pos_bound ((v + 1) * t + k - 1) k ltac:(lia)).
  cbv zeta. set (c := (((v + 1) * t + k - 1) / k)%Z). set (m := ((_ + k - 1) mod k)%Z). intros C M.
  split; [|nia].
  generalize (Z.div_mod (word * k) r ltac:(lia)) (Z.mod_pos_bound (word * k) r P).
  set (x := (word * k / r)%Z). set (y := (word * k mod r)%Z). intros W Y.
  destruct (Z.ltb_spec y t), (Z.eqb_spec x v), (Z.leb_spec (v * q + c) word), (Z.ltb_spec word ((v + 1) * q + c));
    cbn [negb andb]; try reflexivity; exfalso; try subst x; nia.
Qed.

Lemma mean_of_value v : (0 <= v < k)%Z ->
  mean b (fun word => one (negb (is_rejected b k word) && (value_of b k word =? v)%Z)) = IZR (2^ b / k) / IZR (2^ b).
Proof.
  intros V. generalize (Z.div_mod (2^ b) k ltac:(lia)) (Z.mod_pos_bound (2^ b) k ltac:(lia)) (pow_positive b).
  intros E T P. destruct (interval_of_value v 0 V) as [_ C]. set (c := (((v + 1) * (2^ b mod k) + k - 1) / k)%Z) in *.
  set (q := (2^ b / k)%Z) in *. assert (0 <= q)%Z by (apply Z.div_pos; lia).
  transitivity (mean b (fun word => one (word <? (v + 1) * q + c)%Z + -1 * one (word <? v * q + c)%Z)).
  - apply mean_ext. intros word _. rewrite (proj1 (interval_of_value v word V)). fold c q.
    destruct (Z.leb_spec (v * q + c) word), (Z.ltb_spec word ((v + 1) * q + c)), (Z.ltb_spec word (v * q + c)); try nia;
      simpl; ring.
  - rewrite mean_plus, mean_scale, !mean_below by nia. rewrite !plus_IZR, !mult_IZR, !plus_IZR. field.
    apply Rgt_not_eq, (IZR_lt 0), P.
Qed.

(* Exactly floor(2^b / k) of the words of b bits that are not rejected give each value. *)
Theorem words_of_an_index v : (0 <= v < k)%Z ->
  sum b (fun word => if negb (is_rejected b k word) && (value_of b k word =? v) then 1 else 0)%Z = (2^ b / k)%Z.
Proof.
  intros V. apply eq_IZR. generalize (mean_of_value v V). assert (N : IZR (2^ b) <> 0) by (apply Rgt_not_eq, (IZR_lt 0),
    pow_positive).
  rewrite (mean_ext b _ (fun word => IZR (if negb (is_rejected b k word) && (value_of b k word =? v) then 1 else 0)%Z)).
  - rewrite mean_integers. intros H. apply Rmult_eq_reg_r with (/ IZR (2^ b)); [exact H|apply Rinv_neq_0_compat, N].
  - intros word _. destruct (_ && _); reflexivity.
Qed.

Let accepted : R := IZR k * (IZR (2^ b / k) / IZR (2^ b)).

(* By one word: what follows a rejection, or a function of the value. *)
Lemma by_word a (f : Z -> R) : mean b (fun word => if is_rejected b k word then a else f (value_of b k word))
  = (1 - accepted) * a + accepted * (total k f / IZR k).
Proof.
  assert (K : IZR k <> 0) by (apply Rgt_not_eq, (IZR_lt 0); lia). set (each_value := IZR (2^ b / k) / IZR (2^ b)) in *.
  transitivity (mean b (fun word => a + total k (fun v => (f v - a) * one (negb (is_rejected b k word) &&
    (value_of b k word =? v)%Z)))).
  - apply mean_ext. intros word W. destruct (is_rejected b k word); cbn [negb andb one].
    + generalize (total_affine k 0 0 f ltac:(lia)). intros Z.
      replace (total k (fun v => (f v - a) * 0)) with (total k (fun v => 0 * f v + 0)); [rewrite Z; ring|].
      unfold total. f_equal. apply each_ext. intros. ring.
    + rewrite (total_select k (fun v => f v - a)); [ring|]. unfold value_of. split.
      * apply Z.div_pos; [nia|apply pow_positive].
      * apply Z.div_lt_upper_bound; [apply pow_positive|nia].
  - rewrite mean_plus, mean_const. unfold total at 1.
    rewrite (mean_of_total b _ (fun v word =>
      (f v - a) * one (negb (is_rejected b k word) && (value_of b k word =? v)%Z))).
    rewrite (each_ext _ _ (fun v => each_value * f v + - (each_value * a))).
    + fold (total k (fun v => each_value * f v + - (each_value * a))). rewrite total_affine by lia. unfold accepted.
      fold each_value. field. exact K.
    + intros v V. rewrite mean_scale, mean_of_value by lia. fold each_value. ring.
Qed.

Lemma accepted_range : 1/2 < accepted <= 1.
Proof.
  generalize (Z.div_mod (2^ b) k ltac:(lia)) (Z.mod_pos_bound (2^ b) k ltac:(lia)) (pow_positive b). intros E T P.
  assert (1 <= 2^ b / k)%Z by (apply Z.div_le_lower_bound; lia).
  assert (L : (2^ b mod k < k * (2^ b / k))%Z) by nia. apply IZR_lt in L, P. destruct T as [T _]. apply IZR_le in T.
  apply (f_equal IZR) in E. rewrite plus_IZR in E.
  assert (A : accepted * IZR (2^ b) = IZR (k * (2^ b / k))) by (unfold accepted; rewrite mult_IZR; field; lra).
  split; [apply Rmult_lt_reg_r with (IZR (2^ b))|apply Rmult_le_reg_r with (IZR (2^ b))]; lra.
Qed.

(* What follows the index of the words at hand: it is uniform, whatever is done with the words that are left. *)
Definition follow (count : nat) (next : Z -> list Z -> R) : R :=
  mean_of count b (fun words => match index b k words with Some (x, remaining) => next x remaining | None => 0 end).

Lemma follow_step count next : follow (S count) next
  = (1 - accepted) * follow count next + accepted * (total k (fun x => mean_of count b (next x)) / IZR k).
Proof.
  rewrite <- by_word. apply mean_ext. intros word _. cbn [index]. destruct (is_rejected b k word); reflexivity.
Qed.

Lemma follow_scale c f g : (forall x count, mean_of count b (f x) = c * mean_of count b (g x))
  -> forall count, follow count f = c * follow count g.
Proof.
  intros H. induction count as [|count IH]; [unfold follow; simpl; ring|]. rewrite !follow_step, IH.
  transitivity ((1 - accepted) * (c * follow count g)
    + accepted * (total k (fun x => c * mean_of count b (g x) + 0) / IZR k)).
  - do 3 f_equal. unfold total. f_equal. apply each_ext. intros i _. rewrite H. ring.
  - rewrite total_affine by lia. unfold Rdiv. ring.
Qed.

Lemma follow_uniform h next count :
  follow count (fun x remaining => h x * next remaining) = total k h / IZR k * follow count (fun _ => next).
Proof.
  assert (K : IZR k <> 0) by (apply Rgt_not_eq, (IZR_lt 0); lia).
  assert (Constant : forall c, total k (fun x => h x * c) = total k h * c).
  { intros c. transitivity (total k (fun x => c * h x + 0)); [|rewrite total_affine by lia; ring].
    unfold total. f_equal. apply each_ext. intros. ring. }
  induction count as [|count IH]; [unfold follow; simpl; ring|]. rewrite !follow_step, IH, total_constant by lia.
  transitivity ((1 - accepted) * (total k h / IZR k * follow count (fun _ => next))
    + accepted * (total k (fun x => h x * mean_of count b next) / IZR k)).
  - do 3 f_equal. unfold total. f_equal. apply each_ext. intros i _. apply mean_of_scale.
  - rewrite Constant. field. exact K.
Qed.

(* The mean of a function of n indices, where further words suffice. *)
Definition mean_of_indices (n further : nat) (g : list Z -> R) : R :=
  mean_of n b (fun words => mean_of further b (fun more =>
    match indices b k words more with Some (xs, _) => g xs | None => 0 end)).

(* The probability that further words suffice for n indices. *)
Definition enough (n further : nat) : R := mean_of_indices n further (fun _ => 1).

Fixpoint product_of (hs : list (Z -> R)) (xs : list Z) : R :=
  match hs, xs with h :: hs, x :: xs => h x * product_of hs xs | _, _ => 1 end.

Lemma indices_step n further (h : Z -> R) (g f : list Z -> R) : (forall x xs, f (x :: xs) = h x * g xs) ->
  mean_of_indices (S n) further f = follow (S further) (fun x more => h x * mean_of n b (fun words =>
    match indices b k words more with Some (xs, _) => g xs | None => 0 end)).
Proof.
  intros F. unfold mean_of_indices, follow. cbn [mean_of]. apply mean_ext. intros word _. rewrite mean_of_swap.
  apply mean_of_ext. intros more _. transitivity (mean_of n b (fun words =>
    match index b k (word :: more) with
    | Some (x, more) => h x * match indices b k words more with Some (xs, _) => g xs | None => 0 end
    | None => 0 end)).
  - apply mean_of_ext. intros words _. cbn [indices]. destruct (index b k (word :: more)) as [[x left]|];
    [|reflexivity]. destruct (indices b k words left) as [[xs left']|]; [apply F|ring].
  - destruct (index b k (word :: more)) as [[x left]|]; [apply mean_of_scale|apply mean_of_const].
Qed.

(* Where words suffice, indices are uniform and independent: the mean of a product of functions of them. *)
Theorem indices_are_independent hs : forall further,
  mean_of_indices (length hs) further (product_of hs)
    = enough (length hs) further * product (map (fun h => total k h / IZR k) hs).
Proof.
  induction hs as [|h hs IH]; intros further; cbn [length map product fold_right].
  - unfold enough, mean_of_indices. cbn [mean_of indices product_of]. unfold product. simpl. ring.
  - set (mean_uniform := product (map (fun h => total k h / IZR k) hs)) in *.
    assert (After : forall g count, mean_of count b (fun more => mean_of (length hs) b (fun words =>
      match indices b k words more with Some (xs, _) => g xs | None => 0 end)) = mean_of_indices (length hs) count g)
      by (intros; apply mean_of_swap).
    unfold enough at 1. rewrite (indices_step _ _ h (product_of hs)), (indices_step _ _ (fun _ => 1) (fun _ => 1))
      by (intros; simpl; ring).
    rewrite !follow_uniform, total_constant by lia. rewrite (follow_scale mean_uniform _ (fun _ more =>
      mean_of (length hs) b (fun words => match indices b k words more with Some (xs, _) => 1 | None => 0 end))).
    + cbn [product fold_right]. unfold mean_uniform, product. field. apply Rgt_not_eq, (IZR_lt 0). lia.
    + intros _ count. rewrite (After (product_of hs)), (After (fun _ => 1)), IH. unfold enough. ring.
Qed.

(* That words do not suffice has an exponentially small probability. *)
Theorem words_suffice n : forall further, 1 - 3 ^ n * (3/4) ^ further <= enough n further.
Proof.
  generalize accepted_range. intros A. induction n as [|n IH]; intros further.
  - unfold enough, mean_of_indices. cbn [mean_of indices]. rewrite mean_of_const.
    generalize (pow_lt (3/4) further). simpl. lra.
  - unfold enough. rewrite (indices_step _ _ (fun _ => 1) (fun _ => 1)) by (intros; simpl; ring).
    assert (Cancel : forall e, IZR k * e / IZR k = e) by (intros; field; apply Rgt_not_eq, (IZR_lt 0); lia).
    rewrite follow_uniform, total_constant, Cancel, Rmult_1_l by lia.
    assert (After : forall count, mean_of count b (fun more => mean_of n b (fun words =>
      match indices b k words more with Some (xs, _) => 1 | None => 0 end)) = enough n count)
      by (intros; apply mean_of_swap).
    assert (P : 1 <= 3 ^ n) by (apply pow_R1_Rle; lra).
    induction further as [|further IHf]; rewrite follow_step, After, total_constant, Cancel by lia.
    + unfold follow. cbn [mean_of index]. specialize (IH O). simpl in *. nra.
    + specialize (IH (S further)). cbn [pow] in *. generalize (pow_lt (3/4) further ltac:(lra)). intros Q.
      set (x := (3/4) ^ further) in *. set (y := 3 ^ n) in *. set (t := follow _ _) in *. set (e := enough _ _) in *.
      assert (1 - 3 * y * x <= t) by lra. assert (0 < y * x) by nra.
      assert ((1 - accepted) * (1 - 3 * y * x) <= (1 - accepted) * t) by (apply Rmult_le_compat_l; lra).
      assert (accepted * (1 - y * (3 / 4 * x)) <= accepted * e) by (apply Rmult_le_compat_l; lra). nra.
Qed.
Lemma mean_of_indices_ext n further f g : (forall xs, length xs = n -> f xs = g xs)
  -> mean_of_indices n further f = mean_of_indices n further g.
Proof.
  intros H. apply mean_of_ext. intros words <-. apply mean_of_ext. intros more _.
  assert (L : forall words more,
    match indices b k words more with Some (xs, _) => length xs = length words | None => True end).
  { clear. induction words as [|word words IH]; intros more; cbn [indices]; [reflexivity|].
    destruct (index b k (word :: more)) as [[x remaining]|]; [|exact I]. specialize (IH remaining).
    destruct (indices b k words remaining) as [[xs last]|]; [simpl; congruence|exact I]. }
  specialize (L words more). destruct (indices b k words more) as [[xs last]|]; [apply H, L|reflexivity].
Qed.

Variables (c : nat) (planes keep : Z).
Hypothesis coin_range : (0 <= planes <= Z.of_nat c)%Z.
Hypothesis keep_range : (0 <= keep <= 2 ^ planes)%Z.

(* The probability that a value is reported as another one, or the same. *)
Definition probability (value reported : Z) : R :=
  IZR (2 ^ planes - keep + if value =? reported then k * keep else 0)%Z / IZR (k * 2 ^ planes).

Lemma one_report value reported : (0 <= reported < k)%Z ->
  mean c (fun coin =>
    total k (fun other => one (report c planes keep value coin other =? reported)%Z) / IZR k)
    = probability value reported.
Proof.
  intros Y. assert (K : IZR k <> 0) by (apply Rgt_not_eq, (IZR_lt 0); lia). set (same := one (value =? reported)%Z).
  assert (Other : total k (fun other => one (other =? reported)%Z) = 1).
  { rewrite <- (total_select k (fun _ => 1) reported Y). unfold total. f_equal. apply each_ext. intros v _.
    rewrite Z.eqb_sym, Rmult_1_l. reflexivity. }
  transitivity (mean c (fun coin => (same - / IZR k) * one (coin <? keep * 2 ^ (Z.of_nat c - planes))%Z + / IZR k)).
  - apply mean_ext. intros coin _. unfold report, is_kept. rewrite Z.shiftl_mul_pow2 by lia.
    destruct (coin <? _)%Z; cbn [one]; [rewrite total_constant by lia; fold same|rewrite Other]; field; exact K.
  - assert (0 < 2 ^ planes)%Z by (apply Z.pow_pos_nonneg; lia).
    assert (0 < 2 ^ (Z.of_nat c - planes))%Z by (apply Z.pow_pos_nonneg; lia).
    assert (E : (2^ c = 2 ^ planes * 2 ^ (Z.of_nat c - planes))%Z) by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
    rewrite mean_plus, mean_scale, mean_const, mean_below, E by (rewrite E; nia). unfold probability.
    rewrite !mult_IZR, plus_IZR, minus_IZR.
    replace (IZR (if (value =? reported)%Z then _ else _)) with (same * IZR (k * keep)).
    + rewrite mult_IZR. field. repeat split; try exact K; apply Rgt_not_eq, (IZR_lt 0); assumption.
    + unfold same. destruct (value =? reported)%Z; simpl; ring.
Qed.

Lemma reports_law further : forall values reported, length values = length reported ->
  Forall (fun y => 0 <= y < k)%Z reported ->
  mean_of (length values) c (fun coins => mean_of_indices (length values) further (fun others =>
    one (are Z.eqb (reports c planes keep values coins others) reported)))
    = enough (length values) further
      * product (map (fun '(value, reported) => probability value reported) (combine values reported)).
Proof.
  set (test := fun value coin reported other => one (report c planes keep value coin other =? reported)%Z).
  set (tests := fix tests values coins ys := match values, coins, ys with
    | value :: values, coin :: coins, y :: ys => test value coin y :: tests values coins ys | _, _, _ => [] end).
  intros values reported L Y.
  transitivity (mean_of (length values) c (fun coins =>
    enough (length values) further * product (map (fun h => total k h / IZR k) (tests values coins reported)))).
  - apply mean_of_ext. intros coins C.
    assert (T : length (tests values coins reported) = length values).
    { clear Y. revert coins reported C L. clear. induction values as [|v values IH]; intros [|coin coins] [|y ys] C L;
      try discriminate; [reflexivity|]. simpl. f_equal. apply IH; simpl in *; congruence. }
    rewrite <- T, <- indices_are_independent, T. apply mean_of_indices_ext. intros others O.
    clear Y T. revert coins reported others C L O. clear. induction values as [|v values IH];
      intros [|coin coins] [|y ys] [|x others] C L O; try discriminate; [reflexivity|]. simpl. rewrite one_and.
    unfold test at 1. f_equal. apply IH; simpl in *; congruence.
  - rewrite mean_of_scale. f_equal. revert reported L Y. clear - range coin_range keep_range.
    induction values as [|v values IH]; intros [|y ys] L Y; try discriminate; [reflexivity|]. inversion Y; subst.
    cbn [length mean_of tests map combine]. unfold product at 2. cbn [fold_right].
    rewrite <- (one_report v y) by assumption.
    fold (product (map (fun '(value, reported) => probability value reported) (combine values ys))).
    rewrite <- IH by (assumption || simpl in L; congruence). rewrite <- mean_scale_right. apply mean_ext. intros coin _.
    rewrite <- mean_of_scale. reflexivity.
Qed.
End Index.

(* Where further words suffice, the reports of a chunk are independent and have exactly their probabilities, whatever
   the values are: that they suffice has the same probability for all values and reports. *)
Theorem reports_are_exact k planes keep further values reported : let n := length values in
  (0 < k <= 2 ^ 32)%Z -> (0 <= planes <= 64)%Z -> (0 <= keep <= 2 ^ planes)%Z ->
  length reported = n -> Forall (fun y => 0 <= y < k)%Z reported ->
  mean_of n (coin_bits planes) (fun coins => mean_of n (index_bits k) (fun words =>
    mean_of further (index_bits k) (fun more =>
      match mix k planes keep values coins words more with
      | Some (drawn, _) => one (are Z.eqb drawn reported) | None => 0 end)))
    = enough (index_bits k) k n further
      * product (map (fun '(value, y) => probability k planes keep value y) (combine values reported)).
Proof.
  cbv zeta. intros K P H L Y. rewrite <- (reports_law (index_bits k) k) with (c := coin_bits planes);
    try assumption; try congruence.
  - apply mean_of_ext. intros coins _. apply mean_of_ext. intros words _. apply mean_of_ext. intros more _. unfold mix.
    destruct (indices (index_bits k) k words more) as [[others remaining]|]; reflexivity.
  - unfold index_bits. destruct (Z.leb_spec k 256); [change (2^ 16)%Z with 65536%Z|]; lia.
  - unfold coin_bits. destruct (Z.leb_spec planes 16), (Z.leb_spec planes 32); lia.
Qed.
