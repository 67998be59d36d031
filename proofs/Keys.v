(* Values that are private themselves: each value that has rows gets a noisy count, which is shown if it is large
   enough. What is shown is private for persons with one delta, and with no smaller one. *)
From Coq Require Import Reals List Bool ZArith Lia Lra Psatz.
From Flocq Require Import Core.
From Dpnoise Require Import Sums Divergence Private.
Import ListNotations.
Open Scope R_scope.

(* A concave sequence, which falls, from 1 on. *)
Section Concave.
Variable f : nat -> R.
Hypothesis concave : forall n, (1 <= n)%nat -> f n + f (S (S n)) <= 2 * f (S n).
Hypothesis falling : forall n, (1 <= n)%nat -> f (S n) <= f n.
Hypothesis not_positive : forall n, f n <= 0.

(* It is above its chords. *)
Lemma chord m n : (1 <= n <= m)%nat -> (INR m - INR n) * f 1%nat + (INR n - 1) * f m <= (INR m - 1) * f n.
Proof.
  intros N. assert (A : forall n, INR n * (f (S (S n)) - f (S n)) <= f (S n) - f 1%nat).
  { intros k. induction k as [|k IH]; [simpl; lra|]. specialize (concave (S k) ltac:(lia)). rewrite S_INR.
    assert (P := pos_INR k). nra. }
  destruct n as [|n]; [lia|]. assert (D : forall k, f (S (S n + k)) - f (S n + k)%nat <= f (S (S n)) - f (S n)).
  { intros k. induction k as [|k IH]; [rewrite Nat.add_0_r; lra|]. specialize (concave (S n + k)%nat ltac:(lia)).
    rewrite Nat.add_succ_r. lra. }
  assert (B : forall k, f (S n + k)%nat - f (S n) <= INR k * (f (S (S n)) - f (S n))).
  { intros k. induction k as [|k IH]; [rewrite Nat.add_0_r; simpl; lra|]. rewrite Nat.add_succ_r, S_INR.
    specialize (D k). lra. }
  specialize (A n). specialize (B (m - S n)%nat). replace (S n + (m - S n))%nat with m in B by lia.
  rewrite minus_INR in B by lia. assert (P := le_INR _ _ (proj2 N)). rewrite S_INR in *. assert (Q := pos_INR n).
  assert ((INR m - (INR n + 1)) * (INR n * (f (S (S n)) - f (S n))) <= (INR m - (INR n + 1)) * (f (S n) - f 1%nat))
    by (apply Rmult_le_compat_l; lra).
  assert (INR n * (f m - f (S n)) <= INR n * ((INR m - (INR n + 1)) * (f (S (S n)) - f (S n))))
    by (apply Rmult_le_compat_l; lra).
  lra.
Qed.

(* For numbers from 1 on with a sum of at most m, f adds up to the least for one of them, or for m. *)
Lemma one_or_all m v : (1 <= m)%nat -> (forall n, In n v -> (1 <= n)%nat) -> (list_sum v <= m)%nat ->
  Rmin (f m) (INR m * f 1%nat) <= sum_over f v.
Proof.
  intros M P S. destruct v as [|n v]; [simpl; eapply Rle_trans; [apply Rmin_l|apply not_positive]|].
  assert (D : f m <= f 1%nat).
  { clear - falling M. induction M as [|m M IH]; [lra|]. specialize (falling m M). lra. }
  assert (A : forall w, (forall n, In n w -> (1 <= n)%nat) -> (list_sum w <= m)%nat ->
    (INR m * INR (length w) - INR (list_sum w)) * f 1%nat + (INR (list_sum w) - INR (length w)) * f m
      <= (INR m - 1) * sum_over f w /\ INR (length w) <= INR (list_sum w)).
  { intros w Q T. induction w as [|k w IH]; [simpl; split; lra|]. unfold list_sum, sum_over in *.
    cbn [length fold_right] in *.
    destruct (IH (fun y I => Q y (or_intror I)) ltac:(lia)) as [E L]. specialize (Q k (or_introl eq_refl)).
    generalize (chord m k ltac:(lia)) (le_INR _ _ Q). rewrite (S_INR (length w)), plus_INR.
    simpl (INR 1). intros. split; lra. }
  destruct (A _ P S) as [E L]. apply le_INR in S. set (j := INR (length (n :: v))) in *.
  set (t := INR (list_sum (n :: v))) in *. assert (J : 1 <= j) by (unfold j; cbn [length]; rewrite S_INR;
    generalize (pos_INR (length v)); lra).
  set (least := Rmin (f m) (INR m * f 1%nat)). assert (X := Rmin_l (f m) (INR m * f 1%nat)).
  assert (Y := Rmin_r (f m) (INR m * f 1%nat)). fold least in X, Y. destruct (Nat.eq_dec m 1) as [->|N].
  - simpl INR in *. destruct v as [|k v].
    + simpl in *. unfold list_sum in *. assert (n = 1)%nat as -> ; [|lra]. specialize (P n (or_introl eq_refl)).
      unfold t in S. simpl in S. apply (INR_le _ 1) in S. lia.
    + unfold j in *. cbn [length] in *. rewrite !S_INR in *. generalize (pos_INR (length v)). lra.
  - assert (G : 1 < INR m) by (apply (lt_INR 1); lia). apply (Rmult_le_reg_l (INR m - 1)); [lra|].
    eapply Rle_trans; [|exact E].
    assert (0 <= (INR m - t) * (f 1%nat - f m)) by (apply Rmult_le_pos; lra).
    assert (0 <= (j - 1) * (INR m * f 1%nat - least)) by (apply Rmult_le_pos; lra).
    assert (0 <= (INR m - j) * (f m - least)) by (apply Rmult_le_pos; lra). lra.
Qed.
End Concave.

(* What is shown of a value, a number or nothing: with n rows, the noisy count or nothing; without rows, nothing. *)
Section Keys.
Variable noisy : nat -> option Z -> R.
Hypothesis noise_has_laws : forall n, probabilities (noisy n).

Definition reveal (n : nat) (y : option Z) : R :=
  match n, y with O, None => 1 | O, Some _ => 0 | _, _ => noisy n y end.

(* Tables are lists of pairs: how many rows of each value others have, and how many the person. *)
Fixpoint histogram (counts : list nat) : list (option Z) -> R :=
  match counts with [] => nothing | n :: counts => after (reveal n) (fun _ => histogram counts) end.
Definition of_others (t : list (nat * nat)) : list nat := map fst t.
Definition of_all (t : list (nat * nat)) : list nat := map (fun x => (fst x + snd x)%nat) t.
Definition rows (t : list (nat * nat)) : nat := list_sum (map snd t).

(* That nothing is shown of n rows, and of all values that only the person has: p is 1 less this. *)
Definition hidden (n : nat) : R := noisy n None.
Definition is_new (x : nat * nat) : bool := (fst x =? 0)%nat && (0 <? snd x)%nat.
Definition news (t : list (nat * nat)) : list nat := map snd (filter is_new t).
Definition all_hidden (v : list nat) : R := fold_right (fun n => Rmult (hidden n)) 1 v.

(* Something is shown of such a value. *)
Definition is_shown (y : option Z) : bool := match y with Some _ => true | None => false end.
Fixpoint tells (t : list (nat * nat)) (ys : list (option Z)) : bool :=
  match t, ys with x :: t, y :: ys => (is_new x && is_shown y) || tells t ys | _, _ => false end.

Variable e : R.
Hypothesis e_positive : 0 <= e.
Hypothesis noise_is_private : forall n y, (1 <= n)%nat ->
  noisy n y <= exp e * noisy (S n) y /\ noisy (S n) y <= exp e * noisy n y.

Lemma reveal_has_law n : probabilities (reveal n).
Proof.
  destruct n; [|apply noise_has_laws]. assert (P : forall y, 0 <= reveal 0 y) by (intros [z|]; simpl; lra).
  split; [exact P|]. rewrite <- (Rplus_0_r 1). apply (is_sum_of_some (reveal 0) [None] P).
  - repeat constructor. simpl. tauto.
  - intros [z|] N; simpl in *; [lra|auto].
Qed.

Lemma histogram_has_law counts : probabilities (histogram counts).
Proof.
  induction counts as [|n counts IH]; [apply nothing_is_a_law|]. apply after_is_a_law; [apply reveal_has_law|auto].
Qed.

Lemma rows_more n v y : (1 <= n)%nat ->
  noisy n y <= exp (INR v * e) * noisy (n + v) y /\ noisy (n + v) y <= exp (INR v * e) * noisy n y.
Proof.
  intros N. induction v as [|v [A B]]; [rewrite Nat.add_0_r; simpl; rewrite Rmult_0_l, exp_0; lra|].
  destruct (noise_is_private (n + v) y ltac:(lia)) as [C D]. rewrite Nat.add_succ_r, S_INR.
  rewrite Rmult_plus_distr_r, exp_plus, Rmult_1_l. assert (P := exp_pos (INR v * e)). split.
  - rewrite Rmult_assoc. eapply Rle_trans; [exact A|]. apply Rmult_le_compat_l; lra.
  - rewrite (Rmult_comm (exp _)), Rmult_assoc. eapply Rle_trans; [exact D|].
    apply Rmult_le_compat_l; [apply Rlt_le, exp_pos|lra].
Qed.

Lemma hidden_range n : 0 <= hidden n <= 1.
Proof.
  split; [apply noise_has_laws|]. rewrite <- (Rplus_0_r (hidden n)). apply (noise_has_laws n) with (xs := [None]).
  repeat constructor. simpl. tauto.
Qed.

Lemma all_hidden_range v : 0 <= all_hidden v <= 1.
Proof. induction v as [|n v IH]; simpl; [lra|]. generalize (hidden_range n). intros. nra. Qed.

Lemma all_hidden_more x t :
  all_hidden (news (x :: t)) = (if is_new x then hidden (snd x) else 1) * all_hidden (news t).
Proof. unfold news. simpl. destruct (is_new x); simpl; ring. Qed.

(* One value without and with the person's rows: v rows are v steps of e, but for what is new. *)
Lemma reveal_below n v y : let s := if is_new (n, v) then hidden v else 1 in
  s * reveal n y <= exp (INR v * e) * reveal (n + v) y /\
  (is_new (n, v) && is_shown y = false -> reveal (n + v) y <= exp (INR v * e) * reveal n y).
Proof.
  assert (E : 1 <= exp (INR v * e)).
  { rewrite <- exp_0. apply Raux.exp_le, Rmult_le_pos; [apply pos_INR|exact e_positive]. }
  unfold is_new, is_shown. cbn [fst snd]. destruct n as [|n]; [destruct v as [|v]|]; cbv zeta.
  - simpl. rewrite Rmult_0_l, exp_0. destruct y; lra.
  - assert (H := hidden_range (S v)). assert (F := proj1 (noise_has_laws (S v)) y).
    change (0 <? S v)%nat with true. destruct y as [z|]; cbn [Nat.eqb andb reveal Nat.add]; unfold hidden in *.
    + split; [nra|discriminate].
    + split; [|intros _]; nra.
  - destruct (rows_more (S n) v y ltac:(lia)) as [A B]. cbn [Nat.eqb andb reveal Nat.add] in *. rewrite Rmult_1_l. auto.
Qed.

Lemma histogram_below t : forall ys,
  all_hidden (news t) * histogram (of_others t) ys <= exp (INR (rows t) * e) * histogram (of_all t) ys /\
  (tells t ys = false -> histogram (of_all t) ys <= exp (INR (rows t) * e) * histogram (of_others t) ys).
Proof.
  induction t as [|[n v] t IH]; intros ys; [simpl; rewrite Rmult_0_l, exp_0; split; [|intros _]; lra|].
  destruct ys as [|y ys]; [simpl; lra|]. destruct (IH ys) as [A B]. destruct (reveal_below n v y) as [C D]. clear IH.
  assert (L := proj1 (histogram_has_law (of_others t)) ys). assert (L' := proj1 (histogram_has_law (of_all t)) ys).
  assert (F := proj1 (reveal_has_law n) y). assert (F' := proj1 (reveal_has_law (n + v)) y).
  replace (exp (INR (rows ((n, v) :: t)) * e)) with (exp (INR v * e) * exp (INR (rows t) * e))
    by (rewrite <- exp_plus, <- Rmult_plus_distr_r, <- plus_INR; reflexivity).
  rewrite all_hidden_more. cbn [of_others of_all map histogram after tells fst snd].
  fold (of_others t) (of_all t).
  set (s := if is_new (n, v) then hidden v else 1) in *. split.
  - apply Rle_trans with ((s * reveal n y) * (all_hidden (news t) * histogram (of_others t) ys)); [right; ring|].
    apply Rle_trans with ((exp (INR v * e) * reveal (n + v) y) * (exp (INR (rows t) * e) * histogram (of_all t) ys));
      [|right; ring].
    apply Rmult_le_compat; [|apply Rmult_le_pos; [apply all_hidden_range|exact L]|exact C|exact A].
    apply Rmult_le_pos; [|exact F]. unfold s. destruct (is_new _); [apply hidden_range|lra].
  - intros T. apply orb_false_iff in T. destruct T as [T T'].
    apply Rle_trans with ((exp (INR v * e) * reveal n y) * (exp (INR (rows t) * e) * histogram (of_others t) ys));
      [|right; ring].
    apply Rmult_le_compat; auto.
Qed.

(* What is new is shown with probability p to all, and never to others. *)
Lemma nothing_new_is_shown t :
  is_sum (fun ys => if tells t ys then 0 else histogram (of_all t) ys) (all_hidden (news t)).
Proof.
  assert (P : forall t ys, 0 <= if tells t ys then 0 else histogram (of_all t) ys).
  { intros u ys. destruct (tells u ys); [lra|apply histogram_has_law]. }
  induction t as [|[n v] t IH]; [apply nothing_is_a_law|]. rewrite all_hidden_more.
  set (s := if is_new (n, v) then hidden (snd (n, v)) else 1). rewrite <- (Rplus_0_l (s * _)).
  apply (is_sum_of_lists (fun ys => if tells ((n, v) :: t) ys then 0 else _) _ (P _)).
  apply (is_sum_ext (fun p => (if is_new (n, v) && is_shown (fst p) then 0 else reveal (n + v) (fst p))
    * (if tells t (snd p) then 0 else histogram (of_all t) (snd p)))).
  { intros [y ys]. cbn [tells of_all map histogram after fst snd]. fold (of_all t).
    destruct (is_new (n, v) && is_shown y), (tells t ys); simpl; ring. }
  assert (R : forall y, 0 <= if is_new (n, v) && is_shown y then 0 else reveal (n + v) y).
  { intros y. destruct (_ && _); [lra|apply reveal_has_law]. }
  apply (is_sum_of_products (fun y => if is_new (n, v) && is_shown y then 0 else reveal (n + v) y)
    (fun ys => if tells t ys then 0 else histogram (of_all t) ys) s); [exact R|apply P| |exact IH].
  unfold s. destruct (is_new (n, v)) eqn:N; [|apply reveal_has_law]. unfold is_new in N. apply andb_true_iff in N.
  cbn [fst snd] in *. destruct N as [N V]. apply Nat.eqb_eq in N. apply Nat.ltb_lt in V. subst n. simpl.
  rewrite <- (Rplus_0_r (hidden v)). destruct v as [|v]; [lia|].
  apply (is_sum_of_some (fun y => if is_shown y then 0 else reveal (S v) y) [None] R).
  - repeat constructor. simpl. tauto.
  - intros [z|] Z; simpl in *; [lra|auto].
Qed.

Lemma new_is_shown t : chance (histogram (of_all t)) (tells t) = 1 - all_hidden (news t).
Proof.
  assert (L := histogram_has_law (of_all t)). assert (N := proj1 L).
  assert (N1 : forall ys, 0 <= if tells t ys then histogram (of_all t) ys else 0)
    by (intros ys; destruct (tells t ys); auto; lra).
  assert (N2 : forall ys, 0 <= if tells t ys then 0 else histogram (of_all t) ys)
    by (intros ys; destruct (tells t ys); auto; lra).
  generalize (is_sum_plus _ _ _ _ N1 N2 (chance_is _ (tells t) L) (nothing_new_is_shown t)). intros H.
  apply is_sum_unique in H. rewrite (is_sum_unique _ 1) in H; [lra|].
  apply (is_sum_ext (histogram (of_all t))); [|apply L]. intros ys. destruct (tells t ys); ring.
Qed.

Lemma new_is_no_others t ys : tells t ys = true -> histogram (of_others t) ys = 0.
Proof.
  revert ys. induction t as [|[n v] t IH]; intros [|y ys]; try discriminate. simpl. intros T.
  apply orb_true_iff in T. destruct T as [T|T]; [|rewrite IH by exact T; ring].
  unfold is_new in T. simpl in T. destruct n, v, y; try discriminate. simpl. ring.
Qed.

(* The share of one row is epsilon / m. *)
Variable m : nat.
Hypothesis some_rows : (1 <= m)%nat.
Hypothesis hidden_is_possible : forall n, 0 < hidden n.
Hypothesis hidden_is_log_concave : forall n, (1 <= n)%nat -> hidden n * hidden (S (S n)) <= hidden (S n) ^ 2.
Hypothesis hidden_falls : forall n, (1 <= n)%nat -> hidden (S n) <= hidden n.

(* The largest probability that something is shown which is new. *)
Definition keys_delta : R := Rmax (1 - hidden m) (1 - hidden 1 ^ m).

Lemma new_is_at_most_delta t : (rows t <= m)%nat -> 1 - all_hidden (news t) <= keys_delta.
Proof.
  intros M. set (f := fun n => ln (hidden n)).
  assert (G : forall x y, 0 < x -> x <= y -> ln x <= ln y)
    by (intros x y P [L| ->]; [apply Rlt_le, ln_increasing; assumption|lra]).
  assert (A : forall v, all_hidden v = exp (sum_over f v)).
  { intros v. induction v as [|n v IH]; simpl; [symmetry; apply exp_0|]. rewrite IH, exp_plus. unfold f.
    rewrite exp_ln by apply hidden_is_possible. reflexivity. }
  assert (H : Rmin (f m) (INR m * f 1%nat) <= sum_over f (news t)).
  { apply one_or_all; [| | |exact some_rows| |].
    - intros n N. unfold f. rewrite <- ln_mult by apply hidden_is_possible.
      replace (2 * ln (hidden (S n))) with (ln (hidden (S n) ^ 2)) by (simpl; rewrite Rmult_1_r, ln_mult by apply
        hidden_is_possible; ring).
      apply G; [apply Rmult_lt_0_compat; apply hidden_is_possible|apply hidden_is_log_concave, N].
    - intros n N. apply G; [apply hidden_is_possible|apply hidden_falls, N].
    - intros n. unfold f. rewrite <- ln_1. apply G; [apply hidden_is_possible|apply hidden_range].
    - intros n I. unfold news in I. apply in_map_iff in I. destruct I as [x [<- I]]. apply filter_In in I.
      destruct I as [_ I]. apply andb_true_iff in I. destruct I as [_ I]. apply Nat.ltb_lt in I. lia.
    - eapply Nat.le_trans; [|exact M]. unfold news, rows. clear. induction t as [|x t IH]; simpl; [lia|].
      unfold list_sum in *. destruct (is_new x); simpl; lia. }
  rewrite A. unfold keys_delta. apply Raux.exp_le in H.
  assert (exp (f m) = hidden m) by (apply exp_ln, hidden_is_possible).
  assert (exp (INR m * f 1%nat) = hidden 1 ^ m) by (unfold f; rewrite <- Rpower_pow by apply hidden_is_possible;
    reflexivity).
  generalize (Rmax_l (1 - hidden m) (1 - hidden 1 ^ m)) (Rmax_r (1 - hidden m) (1 - hidden 1 ^ m)). intros.
  unfold Rmin in H. destruct (Rle_dec _ _); lra.
Qed.

Theorem keys_are_private t : (rows t <= m)%nat ->
  private (INR m * e) keys_delta (histogram (of_all t)) (histogram (of_others t)) /\
  private (INR m * e) keys_delta (histogram (of_others t)) (histogram (of_all t)).
Proof.
  intros M. assert (D := new_is_at_most_delta t M). assert (Q := all_hidden_range (news t)).
  assert (L := histogram_has_law (of_others t)). assert (L' := histogram_has_law (of_all t)).
  assert (E : forall x, 0 <= x -> exp (INR (rows t) * e) * x <= exp (INR m * e) * x).
  { intros x X. apply Rmult_le_compat_r, Raux.exp_le, Rmult_le_compat_r, le_INR; assumption. }
  assert (P := exp_pos (INR m * e)). split; apply private_is; try assumption; apply (at_most_grows _ _ _ D).
  - rewrite <- new_is_shown. eapply at_most_le; [|apply (chance_is _ (tells t) L')]. intros ys. cbv beta. unfold more.
    assert (X := proj1 L ys). assert (X' := proj1 L' ys). specialize (E _ X).
    destruct (histogram_below t ys) as [_ B], (tells t ys); [apply Rmax_lub; [lra|nra]|].
    specialize (B eq_refl). rewrite Rmax_left; lra.
  - rewrite <- (Rmult_1_r (1 - _)).
    apply (at_most_le _ (fun ys => (1 - all_hidden (news t)) * histogram (of_others t) ys)).
    + intros ys. unfold more. assert (X := proj1 L ys). specialize (E _ (proj1 L' ys)).
      destruct (histogram_below t ys) as [B _]. apply Rmax_lub; [apply Rmult_le_pos|]; lra.
    + apply at_most_scale; [lra|apply L].
Qed.

(* No smaller delta holds, whatever the epsilon: one value with m rows, or m values with one. *)
Theorem keys_delta_is_reached e' d : (forall t, (rows t <= m)%nat ->
  private e' d (histogram (of_all t)) (histogram (of_others t))) -> keys_delta <= d.
Proof.
  intros H. assert (G : forall t, (rows t <= m)%nat -> 1 - all_hidden (news t) <= d).
  { intros t M. specialize (H t M (tells t)). rewrite new_is_shown in H.
    replace (chance (histogram (of_others t)) (tells t)) with 0 in H; [lra|]. symmetry. apply is_sum_unique.
    apply (is_sum_ext (fun _ => 0)); [|apply is_sum_of_zeros]. intros ys. destruct (tells t ys) eqn:T; [|reflexivity].
    symmetry. apply new_is_no_others, T. }
  apply Rmax_lub.
  - specialize (G [(0, m)]%nat ltac:(unfold rows; simpl; lia)). rewrite all_hidden_more in G. unfold is_new in G.
    replace (0 <? snd (0%nat, m))%nat with true in G by (symmetry; apply Nat.ltb_lt; simpl; lia). simpl in G. lra.
  - assert (R : forall k, rows (repeat (0, 1)%nat k) = k /\ all_hidden (news (repeat (0, 1)%nat k)) = hidden 1 ^ k).
    { intros k. induction k as [|k [A B]]; [split; reflexivity|]. simpl repeat. rewrite all_hidden_more, B.
      split; [transitivity (S (rows (repeat (0, 1)%nat k))); [reflexivity|rewrite A; reflexivity]|reflexivity]. }
    destruct (R m) as [A B]. rewrite <- B. apply G. rewrite A. lia.
Qed.
End Keys.

(* The distribution function of discrete Laplace noise with probabilities (1 - q) / (1 + q) q^|n| is log-concave. *)
Definition laplace (q : R) (n : Z) : R := (1 - q) / (1 + q) * q ^ Z.to_nat (Z.abs n).
Definition laplace_up_to (q : R) (n : Z) : R :=
  if (n <? 0)%Z then q ^ Z.to_nat (- n) / (1 + q) else 1 - q ^ Z.to_nat (n + 1) / (1 + q).

Lemma laplace_adds_up q n : 0 < q < 1 -> laplace_up_to q n = laplace_up_to q (n - 1) + laplace q n.
Proof.
  intros Q. unfold laplace_up_to, laplace. destruct (Z.ltb_spec n 0), (Z.ltb_spec (n - 1) 0); try lia.
  - rewrite Z.abs_neq by lia. replace (Z.to_nat (- (n - 1))) with (S (Z.to_nat (- n))) by lia. simpl. field. lra.
  - assert (n = 0)%Z as -> by lia. simpl. field. lra.
  - rewrite Z.abs_eq by lia. replace (Z.to_nat (n - 1 + 1)) with (Z.to_nat n) by lia.
    replace (Z.to_nat (n + 1)) with (S (Z.to_nat n)) by lia. simpl. field. lra.
Qed.

Lemma laplace_is_log_concave q n : 0 < q < 1 -> laplace_up_to q (n + 1) * laplace_up_to q (n - 1)
  <= laplace_up_to q n ^ 2.
Proof.
  intros Q. unfold laplace_up_to.
  destruct (Z.ltb_spec (n + 1) 0), (Z.ltb_spec (n - 1) 0), (Z.ltb_spec n 0); try lia.
  - replace (Z.to_nat (- n)) with (S (Z.to_nat (- (n + 1)))) by lia.
    replace (Z.to_nat (- (n - 1))) with (S (S (Z.to_nat (- (n + 1))))) by lia. simpl. right. field. lra.
  - assert (n = -1)%Z as -> by lia. simpl. right. field. lra.
  - assert (n = 0)%Z as -> by lia. simpl. apply (Rmult_le_reg_r ((1 + q) ^ 2)); [apply pow_lt; lra|].
    replace ((1 - q * (q * 1) / (1 + q)) * (q * 1 / (1 + q)) * (1 + q) ^ 2) with ((1 + q - q * q) * q) by (field; lra).
    replace ((1 - q * 1 / (1 + q)) * ((1 - q * 1 / (1 + q)) * 1) * (1 + q) ^ 2) with 1 by (field; lra).
    assert (0 <= (1 - q) * ((1 - q) * (1 + q))) by (repeat apply Rmult_le_pos; lra). lra.
  - replace (Z.to_nat (n - 1 + 1)) with (Z.to_nat n) by lia. replace (Z.to_nat (n + 1)) with (S (Z.to_nat n)) by lia.
    replace (Z.to_nat (n + 1 + 1)) with (S (S (Z.to_nat n))) by lia. simpl. set (x := q ^ Z.to_nat n / (1 + q)).
    replace (q * (q * q ^ Z.to_nat n) / (1 + q)) with (q * q * x) by (unfold x; field; lra).
    replace (q * q ^ Z.to_nat n / (1 + q)) with (q * x) by (unfold x; field; lra).
    assert (0 <= x) by (apply Rmult_le_pos; [apply pow_le; lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
    assert (0 <= x * ((1 - q) * (1 - q))) by (apply Rmult_le_pos; [assumption|apply Rmult_le_pos; lra]). lra.
Qed.

(* So a noisy count below a threshold is as the theorems on keys need it: possible, log-concave, and falling. *)
Theorem laplace_hides q threshold : 0 < q < 1 ->
  let hidden n := laplace_up_to q (threshold - 1 - Z.of_nat n) in
  (forall n, 0 < hidden n) /\ (forall n, hidden n * hidden (S (S n)) <= hidden (S n) ^ 2) /\
  (forall n, hidden (S n) <= hidden n).
Proof.
  intros Q hidden. unfold hidden. split; [|split]; intros n.
  - assert (P : forall k, 0 < q ^ k <= 1) by (intros k; induction k; simpl; nra).
    assert (I : 0 < / (1 + q) < 1)
      by (split; [apply Rinv_0_lt_compat|rewrite <- Rinv_1; apply Rinv_lt_contravar]; lra).
    unfold laplace_up_to, Rdiv. destruct (_ <? _)%Z; [apply Rmult_lt_0_compat; [apply P|lra]|].
    specialize (P (Z.to_nat (threshold - 1 - Z.of_nat n + 1))). nra.
  - rewrite !Nat2Z.inj_succ. eapply Rle_trans; [|apply laplace_is_log_concave, Q]. right. f_equal; f_equal; lia.
  - rewrite (laplace_adds_up q (threshold - 1 - Z.of_nat n) Q), Nat2Z.inj_succ.
    replace (threshold - 1 - Z.of_nat n - 1)%Z with (threshold - 1 - Z.succ (Z.of_nat n))%Z by lia.
    assert (0 <= laplace q (threshold - 1 - Z.of_nat n)); [|lra]. unfold laplace, Rdiv.
    repeat apply Rmult_le_pos; try apply pow_le; try apply Rlt_le, Rinv_0_lt_compat; lra.
Qed.
