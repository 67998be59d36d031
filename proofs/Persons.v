(* Tables of persons: a choice from the rows of each person keeps the privacy that releases have for what it may keep,
   and what several rows of a person in several groups cost. Releases have outcomes of any type. *)
From Coq Require Import Reals List Bool PeanoNat Lia Lra Psatz.
From Flocq Require Import Core.
From Dpnoise Require Import Sums Divergence Private.
Import ListNotations.
Open Scope R_scope.

Section Persons.
Context {V : Type}.

(* A row has the id of a person, or none; tables are lists of rows. *)
Definition row : Type := option nat * V.
Definition is_of (i : nat) (x : row) : bool := match fst x with Some j => j =? i | None => false end.
Definition rows_of (i : nat) (t : list row) : list row := filter (is_of i) t.
Definition without (i : nat) (t : list row) : list row := filter (fun x => negb (is_of i x)) t.

(* The tables differ by all rows of one person, about which something holds. *)
Definition one_person (limit : list row -> Prop) (t t' : list row) : Prop :=
  exists i, (t = without i t' /\ limit (rows_of i t')) \/ (t' = without i t /\ limit (rows_of i t)).

Definition neighbours : list row -> list row -> Prop := one_person (fun _ => True).

(* Row k of person i, in the order of the table, is kept if the choice says so; rows of nobody are left out. *)
Fixpoint kept (keep : nat -> nat -> bool) (before t : list row) : list row :=
  match t with
  | [] => []
  | x :: t =>
      let rest := kept keep (before ++ [x]) t in
      match fst x with Some i => if keep i (length (rows_of i before)) then x :: rest else rest | None => rest end
  end.

(* What is kept of one person's rows. *)
Fixpoint picked (keep : nat -> bool) (k : nat) (rows : list row) : list row :=
  match rows with
  | [] => []
  | x :: rows => if keep k then x :: picked keep (S k) rows else picked keep (S k) rows
  end.

Lemma is_of_some i j v : is_of i (Some j, v) = (j =? i).
Proof. reflexivity. Qed.

Lemma is_of_nobody i v : is_of i (None, v) = false.
Proof. reflexivity. Qed.
Arguments is_of : simpl never.

Lemma rows_of_others i j t : j <> i -> rows_of j (without i t) = rows_of j t.
Proof.
  intros N. unfold rows_of, without. induction t as [|[[h|] v] t IH]; simpl; [reflexivity| |exact IH].
  rewrite !is_of_some. destruct (Nat.eqb_spec h i) as [->|M]; simpl; rewrite ?is_of_some, IH; [|reflexivity].
  destruct (Nat.eqb_spec i j); [congruence|reflexivity].
Qed.

Lemma kept_of_others i keep keep' t : (forall j k, j <> i -> keep' j k = keep j k) ->
  forall before, kept keep' (without i before) (without i t) = without i (kept keep before t).
Proof.
  intros H. unfold without. induction t as [|[o v] t IH]; intros before; [reflexivity|].
  specialize (IH (before ++ [(o, v)])). rewrite filter_app in IH. simpl in *. destruct o as [j|].
  - rewrite is_of_some in *. destruct (Nat.eqb_spec j i) as [->|N]; simpl in *.
    + rewrite app_nil_r in IH. destruct (keep i _); simpl; rewrite ?is_of_some, ?Nat.eqb_refl; exact IH.
    + fold (without i before) in *. rewrite H, (rows_of_others i j before) by exact N. rewrite IH.
      destruct (keep j _); simpl; rewrite ?is_of_some; [|reflexivity].
      destruct (Nat.eqb_spec j i); [contradiction|reflexivity].
  - rewrite is_of_nobody in *. exact IH.
Qed.

Lemma kept_of_one i keep t : forall before,
  rows_of i (kept keep before t) = picked (keep i) (length (rows_of i before)) (rows_of i t).
Proof.
  unfold rows_of. induction t as [|[o v] t IH]; intros before; [reflexivity|].
  specialize (IH (before ++ [(o, v)])). rewrite filter_app, app_length in IH. simpl in *. destruct o as [j|].
  - rewrite is_of_some in *. fold (rows_of j before). destruct (Nat.eqb_spec j i) as [->|N]; simpl in *.
    + rewrite Nat.add_1_r in IH. unfold rows_of.
      destruct (keep i _); simpl; rewrite ?is_of_some, ?Nat.eqb_refl; [f_equal|]; exact IH.
    + rewrite Nat.add_0_r in IH. destruct (keep j _); simpl; rewrite ?is_of_some; [|exact IH].
      destruct (Nat.eqb_spec j i); [contradiction|exact IH].
  - rewrite is_of_nobody in *. rewrite Nat.add_0_r in IH. exact IH.
Qed.

Section Choice.
Context {Seed Y : Type}.

(* The choice from a person's rows looks at these rows and at a seed: seed, person, rows, place. *)
Variable choice : Seed -> nat -> list row -> nat -> bool.
Definition chosen (s : Seed) (t : list row) : list row := kept (fun i => choice s i (rows_of i t)) [] t.

Lemma chosen_without_one s i t : chosen s (without i t) = without i (chosen s t).
Proof.
  apply (kept_of_others i _ _ t) with (before := []). intros j k N. rewrite rows_of_others by exact N. reflexivity.
Qed.

(* The seed has a law that does not depend on the table; each person has a part of its own, if these are independent. *)
Variables (weight : Seed -> R) (same : forall y z : Y, {y = z} + {y <> z}).
Hypothesis seeds_have_a_law : probabilities weight.

Definition after_choice (release : list row -> Y -> R) (t : list row) : Y -> R :=
  image same snd (followed_by weight (fun s => release (chosen s t))).

Variable limit : list row -> Prop.
Hypothesis choice_is_limited : forall s i rows, limit (picked (choice s i rows) 0 rows).

Lemma chosen_are_limited s t t' : neighbours t t' -> one_person limit (chosen s t) (chosen s t').
Proof.
  intros [i [[-> _]|[-> _]]]; exists i; [left|right]; (split; [apply chosen_without_one|]); unfold chosen;
    rewrite kept_of_one; apply choice_is_limited.
Qed.

Variable release : list row -> Y -> R.
Hypothesis releases_are_laws : forall t, probabilities (release t).

Theorem choice_keeps_privacy e d : 0 <= d ->
  (forall t t', one_person limit t t' -> private e d (release t) (release t')) ->
  forall t t', neighbours t t' -> private e d (after_choice release t) (after_choice release t').
Proof.
  intros D H t t' N. apply private_of_a_function; try (apply two_releases_are_a_law; auto).
  rewrite <- (Rplus_0_l e), <- (Rplus_0_l d). apply privacy_adds_up; auto using private_from_itself.
  intros s. apply H, chosen_are_limited, N.
Qed.

Theorem choice_keeps_divergence a r : 1 < a ->
  (forall t t', one_person limit t t' -> divergence_at_most a (release t) (release t') r) ->
  forall t t', neighbours t t' -> divergence_at_most a (after_choice release t) (after_choice release t') r.
Proof.
  intros A H t t' N. apply divergence_of_a_function; try (apply two_releases_are_a_law; auto); [exact A|].
  rewrite <- (Rplus_0_l r). apply divergences_add_up; [apply seeds_have_a_law|intros; apply releases_are_laws| |].
  - apply divergence_from_itself, seeds_have_a_law.
  - intros s. apply H, chosen_are_limited, N.
Qed.

Theorem choice_keeps_zcdp rho : (forall t t', one_person limit t t' -> zcdp rho (release t) (release t')) ->
  forall t t', neighbours t t' -> zcdp rho (after_choice release t) (after_choice release t').
Proof.
  intros H t t' N. apply zcdp_of_a_function; try (apply two_releases_are_a_law; auto). rewrite <- (Rplus_0_l rho).
  apply zcdp_adds_up; try apply seeds_have_a_law; try (intros; apply releases_are_laws).
  - apply zcdp_from_itself, seeds_have_a_law.
  - intros s. apply H, chosen_are_limited, N.
Qed.
End Choice.

(* More rows, anywhere in the table, by a number. *)
Inductive more_rows : nat -> list row -> list row -> Prop :=
| as_many t : more_rows 0 t t
| one_row_more n t l x r : more_rows n t (l ++ r) -> more_rows (S n) t (l ++ x :: r).

Definition differ_by (n : nat) (t t' : list row) : Prop := more_rows n t t' \/ more_rows n t' t.

Lemma all_rows_more i t : more_rows (length (rows_of i t)) (without i t) t.
Proof.
  unfold rows_of, without. induction t as [|x t IH]; simpl; [constructor|].
  destruct (is_of i x); simpl; [apply (one_row_more _ _ []), IH|]. clear -IH.
  induction IH as [|n s l y r _ IH]; [constructor|]. apply (one_row_more _ _ (x :: l)), IH.
Qed.

Section Rows.
Context {Y : Type}.
Variable release : list row -> Y -> R.
Hypothesis releases_are_laws : forall t, probabilities (release t).

(* 1 + e^epsilon + ... + e^((n - 1) epsilon). *)
Fixpoint steps (e : R) (n : nat) : R := match n with O => 0 | S n => 1 + exp e * steps e n end.

Lemma steps_are e n : 0 < e -> steps e n = (exp (INR n * e) - 1) / (exp e - 1).
Proof.
  intros E. apply exp_increasing in E. rewrite exp_0 in E. induction n as [|n IH].
  - simpl. rewrite Rmult_0_l, exp_0. field. lra.
  - cbn [steps]. rewrite IH, S_INR, Rmult_plus_distr_r, exp_plus, Rmult_1_l. field. lra.
Qed.

Lemma steps_end e n : steps e (S n) = steps e n + exp (INR n * e).
Proof.
  induction n as [|n IH]; [simpl; rewrite Rmult_0_l, exp_0; ring|].
  change (steps e (S (S n))) with (1 + exp e * steps e (S n)). rewrite IH at 1.
  change (steps e (S n)) with (1 + exp e * steps e n). rewrite S_INR, Rmult_plus_distr_r, exp_plus, Rmult_1_l. ring.
Qed.

(* Several rows, one after the other. *)
Lemma rows_cost_epsilon e d : (forall t t', differ_by 1 t t' -> private e d (release t) (release t')) ->
  forall n t t', differ_by n t t' -> private (INR n * e) (d * steps e n) (release t) (release t').
Proof.
  intros H. cut (forall n t t', more_rows n t t' -> private (INR n * e) (d * steps e n) (release t) (release t') /\
    private (INR n * e) (d * steps e n) (release t') (release t)).
  { intros C n t t' [M|M]; apply C in M; apply M. }
  intros n t t' M. induction M as [t|n t l x r _ [IH IH']].
  - simpl. rewrite Rmult_0_l, Rmult_0_r. split; apply private_from_itself.
  - assert (O : more_rows 1 (l ++ r) (l ++ x :: r)) by (do 2 constructor). split.
    + rewrite steps_end. replace (d * (steps e n + exp (INR n * e))) with (d * steps e n + exp (INR n * e) * d) by ring.
      rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l. apply private_steps with (release (l ++ r)); [exact IH|].
      apply H. left. exact O.
    + replace (d * steps e (S n)) with (d + exp e * (d * steps e n)) by (simpl; ring).
      rewrite S_INR, Rplus_comm, Rmult_plus_distr_r, Rmult_1_l.
      apply private_steps with (release (l ++ r)); [apply H; right; exact O|exact IH'].
Qed.

Lemma rows_cost_rho rho : (forall t t', differ_by 1 t t' -> zcdp rho (release t) (release t')) ->
  forall n t t', differ_by n t t' -> zcdp (rho * INR n ^ 2) (release t) (release t').
Proof.
  intros H. cut (forall n t t', more_rows n t t' -> zcdp (rho * INR n ^ 2) (release t) (release t')).
  { intros C n t t' [M|M]; apply C in M; [exact M|apply zcdp_is_symmetric, M]. }
  intros n t t' M. induction M as [t|n t l x r M IH].
  - simpl INR. replace (rho * 0 ^ 2) with 0 by ring. apply zcdp_from_itself, releases_are_laws.
  - assert (O : zcdp (rho * 1 ^ 2) (release (l ++ r)) (release (l ++ x :: r)))
      by (replace (rho * 1 ^ 2) with rho by ring; apply H; left; do 2 constructor).
    destruct n as [|n]; [inversion M; exact O|]. assert (P := lt_0_INR (S n) (Nat.lt_0_succ n)).
    rewrite (S_INR (S n)). apply zcdp_steps with (release (l ++ r)); auto; lra.
Qed.

Lemma rows_cost_range eta : (forall t t', differ_by 1 t t' -> in_range eta (release t) (release t')) ->
  forall n t t', differ_by n t t' -> in_range (INR n * eta) (release t) (release t').
Proof.
  intros H. cut (forall n t t', more_rows n t t' -> in_range (INR n * eta) (release t) (release t')).
  { intros C n t t' [M|M]; apply C in M; [exact M|apply range_is_symmetric, M]. }
  intros n t t' M. induction M as [t|n t l x r _ IH].
  - simpl. rewrite Rmult_0_l. apply range_from_itself.
  - rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l. apply ranges_add with (release (l ++ r)); [exact IH|].
    apply H. left. do 2 constructor.
Qed.
End Rows.

(* Groups: which one a row is in is decided by that row alone. Each group that counts has a release of its own, of the
   rows in it, and these are independent. *)
Section Groups.
Context {Y : Type}.
Variable group : V -> nat.
Variable release : nat -> list row -> Y -> R.
Hypothesis releases_are_laws : forall g t, probabilities (release g t).

Definition of_group (g : nat) (t : list row) : list row := filter (fun x => group (snd x) =? g) t.

Fixpoint all_releases (groups : list nat) (t : list row) : list Y -> R :=
  match groups with
  | [] => nothing
  | g :: groups => after (release g (of_group g t)) (fun _ => all_releases groups t)
  end.

Lemma all_releases_are_laws groups t : probabilities (all_releases groups t).
Proof. induction groups as [|g groups IH]; simpl; [apply nothing_is_a_law|apply after_is_a_law; auto]. Qed.

(* How many rows the tables differ by in each group. *)
Definition differ_in (groups v : list nat) (t t' : list row) : Prop :=
  Forall2 (fun g n => differ_by n (of_group g t) (of_group g t')) groups v.

Definition squares (v : list nat) : nat := list_sum (map (fun n => n * n)%nat v).

Lemma steps_nonnegative e n : 0 <= steps e n.
Proof. induction n; simpl; [lra|]. generalize (exp_pos e). intros. nra. Qed.

Lemma steps_add e n k : 0 <= e -> steps e n + steps e k <= steps e (n + k).
Proof.
  intros E. apply Raux.exp_le in E. rewrite exp_0 in E. generalize (steps_nonnegative e k). intros K.
  induction n as [|n IH]; simpl; [lra|]. assert (1 * steps e k <= exp e * steps e k) by (apply Rmult_le_compat_r; lra).
  apply Rmult_le_compat_l with (r := exp e) in IH; lra.
Qed.

Lemma steps_grow e n k : 0 <= e -> (n <= k)%nat -> steps e n <= steps e k.
Proof.
  intros E H. generalize (steps_add e n (k - n) E) (steps_nonnegative e (k - n)).
  replace (n + (k - n))%nat with k by lia. lra.
Qed.

Lemma groups_cost_epsilon e d groups v t t' : 0 <= e -> 0 <= d ->
  (forall g t t', differ_by 1 t t' -> private e d (release g t) (release g t')) ->
  differ_in groups v t t' ->
  private (INR (list_sum v) * e) (d * steps e (list_sum v)) (all_releases groups t) (all_releases groups t').
Proof.
  intros E D H. induction 1 as [|g n groups v M _ IH].
  - simpl. rewrite Rmult_0_l, Rmult_0_r. apply private_from_itself.
  - simpl. rewrite plus_INR, Rmult_plus_distr_r.
    apply private_grows with (INR n * e + INR (list_sum v) * e) (d * steps e n + d * steps e (list_sum v)); try lra.
    + apply (all_releases_are_laws (g :: groups)).
    + rewrite <- Rmult_plus_distr_l. apply Rmult_le_compat_l; [exact D|apply steps_add, E].
    + apply private_after; auto using all_releases_are_laws.
      * apply Rmult_le_pos; [exact D|apply steps_nonnegative].
      * apply rows_cost_epsilon; auto.
Qed.

Lemma groups_cost_rho rho groups v t t' :
  (forall g t t', differ_by 1 t t' -> zcdp rho (release g t) (release g t')) ->
  differ_in groups v t t' -> zcdp (rho * INR (squares v)) (all_releases groups t) (all_releases groups t').
Proof.
  intros H. induction 1 as [|g n groups v M _ IH].
  - unfold squares. simpl. rewrite Rmult_0_r. apply zcdp_from_itself, nothing_is_a_law.
  - unfold squares in *. simpl. rewrite plus_INR, mult_INR, Rmult_plus_distr_l.
    replace (INR n * INR n) with (INR n ^ 2) by ring. apply zcdp_after; auto using all_releases_are_laws.
    apply rows_cost_rho; auto.
Qed.

Lemma groups_cost_range eta groups v t t' :
  (forall g t t', differ_by 1 t t' -> in_range eta (release g t) (release g t')) ->
  differ_in groups v t t' -> in_range (INR (list_sum v) * eta) (all_releases groups t) (all_releases groups t').
Proof.
  intros H. induction 1 as [|g n groups v M _ IH].
  - simpl. rewrite Rmult_0_l. apply range_from_itself.
  - simpl. rewrite plus_INR, Rmult_plus_distr_r. apply range_after; try apply releases_are_laws;
      try apply all_releases_are_laws; auto. apply rows_cost_range; auto.
Qed.

(* One person's rows in each group. *)
Definition rows_in (groups : list nat) (rows : list row) : list nat := map (fun g => length (of_group g rows)) groups.

Lemma one_person_differs groups limit t t' : one_person limit t t' -> exists rows, limit rows
  /\ differ_in groups (rows_in groups rows) t t'.
Proof.
  assert (C : forall p q (l : list row), filter p (filter q l) = filter q (filter p l)).
  { intros p q l. induction l as [|x l IH]; simpl; [reflexivity|].
    destruct (q x) eqn:Q, (p x) eqn:P; simpl; rewrite ?Q, ?P, IH; reflexivity. }
  assert (M : forall i t g, more_rows (length (of_group g (rows_of i t))) (of_group g (without i t)) (of_group g t)).
  { intros i u g. unfold of_group, rows_of, without. rewrite (C _ (is_of i)), (C _ (fun x => negb (is_of i x))).
    apply all_rows_more. }
  intros [i [[-> L]|[-> L]]]; eexists; (split; [exact L|]); unfold differ_in, rows_in; induction groups; constructor;
    auto; [left|right]; apply M.
Qed.

Lemma groups_have_no_more groups rows : NoDup groups -> (list_sum (rows_in groups rows) <= length rows)%nat.
Proof.
  intros N. unfold rows_in, list_sum.
  induction rows as [|x rows IH]; [clear; induction groups; [simpl; lia|assumption]|].
  apply Nat.le_trans with (1 + fold_right plus 0 (map (fun g => length (of_group g rows)) groups))%nat;
    [|cbn [length]; lia]. clear IH.
  assert (O : forall g, (length (of_group g (x :: rows)) = (if group (snd x) =? g then 1 else 0)
    + length (of_group g rows))%nat) by (intros g; unfold of_group; simpl; destruct (_ =? _); reflexivity).
  induction N as [|g groups I N IH]; cbn [map fold_right]; [lia|]. rewrite O.
  destruct (Nat.eqb_spec (group (snd x)) g) as [E|E]; [|lia].
  rewrite (map_ext_in (fun g => length (of_group g (x :: rows))) (fun g => length (of_group g rows))); [lia|].
  intros h J. rewrite O. destruct (Nat.eqb_spec (group (snd x)) h); [congruence|reflexivity].
Qed.

Lemma squares_of_sum v : (squares v <= list_sum v * list_sum v)%nat.
Proof. unfold squares. induction v; simpl; nia. Qed.
End Groups.
End Persons.

(* With at most r rows in each of at most k groups and at most m in all: a full groups, and a rest of s rows. *)
Definition full (r k m : nat) : nat := Nat.min k (m / r).
Definition rest (r k m : nat) : nat := if full r k m <? k then Nat.min (m - full r k m * r) r else 0%nat.
Definition spread (r k m : nat) (v : list nat) : Prop :=
  (forall n, In n v -> (n <= r)%nat) /\ (length (filter (Nat.ltb 0) v) <= k)%nat /\ (list_sum v <= m)%nat.

(* Of numbers up to r with a sum of n the squares add up to at most those of n / r numbers r and one n mod r. *)
Definition largest (r n : nat) : nat := ((n / r) * (r * r) + (n mod r) * (n mod r))%nat.

Lemma largest_is r q t : (t < r)%nat -> largest r (q * r + t) = (q * (r * r) + t * t)%nat.
Proof.
  intros T. unfold largest.
  rewrite (Nat.add_comm (q * r)), Nat.div_add, Nat.mod_add, Nat.div_small, Nat.mod_small by lia. reflexivity.
Qed.

Lemma largest_adds r n x : (0 < r)%nat -> (x <= r)%nat -> (largest r n + x * x <= largest r (n + x))%nat.
Proof.
  intros P X. rewrite (Nat.div_mod n r) by lia. generalize (Nat.mod_upper_bound n r ltac:(lia)).
  set (q := (n / r)%nat). set (t := (n mod r)%nat). intros T. rewrite (Nat.mul_comm r q), largest_is by exact T.
  clearbody q t.
  destruct (Nat.lt_ge_cases (t + x) r) as [L|L].
  - replace (q * r + t + x)%nat with (q * r + (t + x))%nat by lia. rewrite largest_is by exact L. nia.
  - replace (q * r + t + x)%nat with ((q + 1) * r + (t + x - r))%nat by nia. rewrite largest_is by lia.
    assert (A : exists y u z, (t = u + z /\ x = y + z /\ r = y + u + z)%nat)
      by (exists (r - t)%nat, (r - x)%nat, (t + x - r)%nat; lia).
    destruct A as [y [u [z [-> [-> ->]]]]]. replace (u + z + (y + z) - (y + u + z))%nat with z by lia.
    generalize (Nat.le_0_l (y * u)). lia.
Qed.

Lemma largest_grows r n k : (0 < r)%nat -> (n <= k)%nat -> (largest r n <= largest r k)%nat.
Proof. intros P H. induction H; [lia|]. generalize (largest_adds r m 1 P P). rewrite (Nat.add_1_r m). lia. Qed.

Theorem corner_is_largest r k m v : (0 < r)%nat -> spread r k m v ->
  (list_sum v <= full r k m * r + rest r k m)%nat /\
  (squares v <= full r k m * (r * r) + rest r k m * rest r k m)%nat.
Proof.
  intros P [B [K M]].
  assert (S : (list_sum v <= k * r)%nat).
  { apply Nat.le_trans with (length (filter (Nat.ltb 0) v) * r)%nat; [|apply Nat.mul_le_mono_r, K]. clear - B.
    induction v as [|[|n] v IH]; simpl; [lia| |].
    - apply IH. intros n I. apply B. right. exact I.
    - specialize (B (S n) (or_introl eq_refl)) as N. specialize (IH (fun n I => B n (or_intror I))). lia. }
  assert (L : (squares v <= largest r (list_sum v))%nat).
  { clear - B P. unfold squares. induction v as [|n v IH]; simpl; [lia|].
    specialize (IH (fun n I => B n (or_intror I))). rewrite Nat.add_comm, (Nat.add_comm n).
    eapply Nat.le_trans; [apply Nat.add_le_mono_r, IH|]. apply largest_adds; [exact P|]. apply B. left. reflexivity. }
  assert (D := Nat.div_mod m r ltac:(lia)). assert (U := Nat.mod_upper_bound m r ltac:(lia)).
  unfold rest. destruct (Nat.ltb_spec (full r k m) k) as [F|F]; unfold full in *.
  - rewrite Nat.min_r in * by lia. replace (m - m / r * r)%nat with (m mod r)%nat by lia.
    rewrite Nat.min_l by lia. split; [lia|]. eapply Nat.le_trans; [exact L|]. apply (largest_grows r _ m P M).
  - rewrite Nat.min_l in * by lia. split; [lia|]. eapply Nat.le_trans; [exact L|].
    eapply Nat.le_trans; [apply (largest_grows r _ (k * r) P S)|]. rewrite <- (Nat.add_0_r (k * r)), largest_is; lia.
Qed.

Theorem corner_is_reached r k m : (0 < r)%nat ->
  let v := repeat r (full r k m) ++ [rest r k m] in spread r k m v /\
  list_sum v = (full r k m * r + rest r k m)%nat /\
  squares v = (full r k m * (r * r) + rest r k m * rest r k m)%nat.
Proof.
  intros P v. assert (Sum : forall a n, list_sum (repeat n a) = (a * n)%nat)
    by (intros a n; induction a; simpl; lia).
  assert (list_sum v = full r k m * r + rest r k m)%nat as Sv by (unfold v; rewrite list_sum_app, Sum; simpl; lia).
  assert (D := Nat.div_mod m r ltac:(lia)). assert (U := Nat.mod_upper_bound m r ltac:(lia)).
  assert (F : (full r k m * r <= m)%nat) by (unfold full; generalize (Nat.le_min_r k (m / r)); nia).
  assert (K : (full r k m <= k)%nat) by apply Nat.le_min_l.
  split; [|split; [exact Sv|]].
  - split; [|split].
    + intros n I. apply in_app_or in I. destruct I as [I|[<-|[]]]; [apply repeat_spec in I; lia|].
      unfold rest. destruct (_ <? _); lia.
    + unfold v. rewrite filter_app, app_length.
      assert (length (filter (Nat.ltb 0) (repeat r (full r k m))) <= full r k m)%nat
        by (generalize (full r k m); intros a; induction a; simpl; [lia|destruct r; simpl; lia]).
      unfold rest. simpl. destruct (Nat.ltb_spec (full r k m) k) as [E|E]; [destruct (0 <? _)|]; simpl; lia.
    + rewrite Sv. unfold rest. destruct (_ <? _); lia.
  - unfold squares, v. rewrite map_app, list_sum_app. simpl.
    assert (Q : forall a, list_sum (map (fun n => n * n)%nat (repeat r a)) = (a * (r * r))%nat)
      by (intros a; induction a; simpl; lia). rewrite Q. lia.
Qed.

(* So for persons: a choice that keeps at most m rows of each, in groups with releases that are private for a row. *)
Section Cost.
Context {V Seed Y : Type}.
Variables (choice : Seed -> nat -> list (@row V) -> nat -> bool) (weight : Seed -> R).
Variables (same : forall y z : list Y, {y = z} + {y <> z}) (group : V -> nat) (groups : list nat).
Variable release : nat -> list (@row V) -> Y -> R.
Hypothesis seeds_have_a_law : probabilities weight.
Hypothesis releases_are_laws : forall g t, probabilities (release g t).
Hypothesis groups_are_different : NoDup groups.

Let answer : list row -> list Y -> R := after_choice choice weight same (all_releases group release groups).
Let together := all_releases_are_laws group release releases_are_laws groups.

Variable m : nat.
Hypothesis choice_keeps_m : forall s i rows, (length (picked (choice s i rows) 0 rows) <= m)%nat.

Lemma at_most_m t t' : one_person (fun rows => length rows <= m)%nat t t' ->
  exists v, (list_sum v <= m)%nat /\ differ_in group groups v t t'.
Proof.
  intros N. destruct (one_person_differs group groups _ t t' N) as [rows [L M]]. exists (rows_in group groups rows).
  split; [|exact M]. eapply Nat.le_trans; [apply groups_have_no_more, groups_are_different|exact L].
Qed.

Theorem persons_cost_epsilon e d : 0 < e -> 0 <= d ->
  (forall g t t', differ_by 1 t t' -> private e d (release g t) (release g t')) ->
  forall t t', neighbours t t' ->
  private (INR m * e) (d * (exp (INR m * e) - 1) / (exp e - 1)) (answer t) (answer t').
Proof.
  intros E D H. unfold Rdiv. rewrite Rmult_assoc. fold (Rdiv (exp (INR m * e) - 1) (exp e - 1)).
  rewrite <- steps_are by exact E.
  apply choice_keeps_privacy with (fun rows => length rows <= m)%nat; auto using together.
  { apply Rmult_le_pos; [exact D|apply steps_nonnegative]. }
  intros t t' N. destruct (at_most_m t t' N) as [v [L M]].
  apply private_grows with (INR (list_sum v) * e) (d * steps e (list_sum v)); auto using together.
  - apply Rmult_le_compat_r; [lra|apply le_INR, L].
  - apply Rmult_le_compat_l; [exact D|]. apply steps_grow; [lra|exact L].
  - apply groups_cost_epsilon; auto. lra.
Qed.

Theorem persons_cost_range eta : 0 <= eta ->
  (forall g t t', differ_by 1 t t' -> in_range eta (release g t) (release g t')) ->
  forall t t', neighbours t t' -> private (INR m * eta) 0 (answer t) (answer t').
Proof.
  intros E H. apply choice_keeps_privacy with (fun rows => length rows <= m)%nat; auto using together, Rle_refl.
  intros t t' N. destruct (at_most_m t t' N) as [v [L M]].
  apply private_grows with (INR (list_sum v) * eta) 0; auto using together, Rle_refl.
  - apply Rmult_le_compat_r; [lra|apply le_INR, L].
  - apply range_is_private; auto using together. apply groups_cost_range; auto.
Qed.

Theorem persons_cost_rho rho : 0 <= rho ->
  (forall g t t', differ_by 1 t t' -> zcdp rho (release g t) (release g t')) ->
  forall t t', neighbours t t' -> zcdp (rho * INR m ^ 2) (answer t) (answer t').
Proof.
  intros P H. apply choice_keeps_zcdp with (fun rows => length rows <= m)%nat; auto using together.
  intros t t' N. destruct (at_most_m t t' N) as [v [L M]].
  apply zcdp_grows with (rho * INR (squares v)); [|apply groups_cost_rho; auto].
  apply Rmult_le_compat_l; [exact P|]. simpl. rewrite Rmult_1_r, <- mult_INR. apply le_INR.
  generalize (squares_of_sum v). nia.
Qed.

(* With at most r rows in each of at most k groups, besides. *)
Theorem spread_persons_cost_rho r k rho : (0 < r)%nat -> 0 <= rho ->
  (forall s i rows, spread r k m (rows_in group groups (picked (choice s i rows) 0 rows))) ->
  (forall g t t', differ_by 1 t t' -> zcdp rho (release g t) (release g t')) ->
  forall t t', neighbours t t' ->
  zcdp (rho * (INR (full r k m) * INR r ^ 2 + INR (rest r k m) ^ 2)) (answer t) (answer t').
Proof.
  intros R P S H.
  apply choice_keeps_zcdp with (fun rows => spread r k m (rows_in group groups rows)); auto using together.
  intros t t' N. destruct (one_person_differs group groups _ t t' N) as [rows [L M]].
  apply zcdp_grows with (rho * INR (squares (rows_in group groups rows))); [|apply groups_cost_rho; auto].
  apply Rmult_le_compat_l; [exact P|]. simpl. rewrite !Rmult_1_r, <- !mult_INR, <- plus_INR. apply le_INR.
  apply corner_is_largest; assumption.
Qed.
End Cost.

(* The choice of the code is selection sampling: of the rows to come s are to be kept, so the next one is with
   probability s over their number. This is the probability of what is kept and what not. *)
Fixpoint sampled (s : nat) (keep : list bool) : R :=
  match keep with
  | [] => 1
  | true :: keep => INR s / INR (S (length keep)) * sampled (s - 1) keep
  | false :: keep => (1 - INR s / INR (S (length keep))) * sampled s keep
  end.

Theorem all_sets_are_equally_likely s keep : (s <= length keep)%nat ->
  sampled s keep = if count_occ bool_dec keep true =? s then / C (length keep) s else 0.
Proof.
  revert s. induction keep as [|b keep IH]; intros s H; cbn [length] in *.
  - assert (s = 0)%nat as -> by lia. unfold C. simpl. field.
  - assert (F : forall n, INR (fact n) <> 0) by (intros; apply INR_fact_neq_0).
    assert (N : INR (S (length keep)) <> 0) by (apply not_0_INR; discriminate).
    assert (O := count_occ_bound bool_dec true keep).
    destruct b; cbn [sampled count_occ]; (destruct (bool_dec _ _) as [B|B]; [|try congruence]); try discriminate.
    + destruct s as [|s]; [simpl INR; unfold Rdiv; rewrite !Rmult_0_l; reflexivity|].
      rewrite Nat.sub_1_r, IH by (simpl; lia). cbn [Nat.pred Nat.eqb]. destruct (_ =? s); [|ring].
      unfold C. replace (S (length keep) - S s)%nat with (length keep - s)%nat by lia.
      rewrite !fact_simpl, !mult_INR. field. repeat split; auto. apply not_0_INR. discriminate.
    + destruct (Nat.eq_dec s (S (length keep))) as [->|E].
      * replace (_ =? _) with false by (symmetry; apply Nat.eqb_neq; lia). field. exact N.
      * rewrite IH by lia. destruct (_ =? s); [|ring]. unfold C.
        replace (S (length keep) - s)%nat with (S (length keep - s)) by lia.
        rewrite !fact_simpl, !mult_INR, !(S_INR (_ - _)), minus_INR, S_INR in * by lia.
        field. repeat split; auto. assert (P := le_INR s (length keep) ltac:(lia)). lra.
Qed.
