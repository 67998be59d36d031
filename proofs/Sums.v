(* Sums of nonnegative terms over any type: values, pairs of them, vectors. A sum is the least upper bound of the sums
   over finite lists without repeats, so it has no order, and each bijection keeps it. *)
From Coq Require Import Reals List Lia Lra FinFun Classical_Prop.
From Coquelicot Require Import Coquelicot.
Import ListNotations.
Open Scope R_scope.

Definition sum_over {A} (f : A -> R) (xs : list A) : R := fold_right (fun x s => f x + s) 0 xs.
Definition sum_at_most {A} (f : A -> R) (b : R) : Prop := forall xs, NoDup xs -> sum_over f xs <= b.
Definition is_sum {A} (f : A -> R) (s : R) : Prop := sum_at_most f s /\ forall b, sum_at_most f b -> s <= b.

(* The sum, where it is finite. *)
Definition sum_of {A} (f : A -> R) : R := real (Lub_Rbar (fun y => exists xs, NoDup xs /\ y = sum_over f xs)).

Lemma is_sum_of {A} (f : A -> R) b : sum_at_most f b -> is_sum f (sum_of f).
Proof.
  intros H. unfold sum_of. destruct (Lub_Rbar_correct (fun y => exists xs, NoDup xs /\ y = sum_over f xs)) as [U L].
  destruct (Lub_Rbar _) as [s| |].
  - split; [intros xs N; apply (U (sum_over f xs)); eauto|]. intros c C. apply (L c). intros y [xs [N ->]]. apply C, N.
  - exfalso. apply (L b). intros y [xs [N ->]]. apply H, N.
  - exfalso. apply (U 0). exists []. split; [constructor|reflexivity].
Qed.

Lemma is_sum_unique {A} (f : A -> R) s : is_sum f s -> sum_of f = s.
Proof. intros [U L]. destruct (is_sum_of f s U) as [U' L']. apply Rle_antisym; auto. Qed.

(* Finite sums. *)
Lemma sum_over_le {A} (f g : A -> R) xs : (forall x, f x <= g x) -> sum_over f xs <= sum_over g xs.
Proof. intros H. induction xs as [|x xs IH]; simpl; [lra|]. generalize (H x). lra. Qed.
Lemma sum_over_nonnegative {A} (f : A -> R) xs : (forall x, 0 <= f x) -> 0 <= sum_over f xs.
Proof. intros H. induction xs as [|x xs IH]; simpl; [lra|]. generalize (H x). lra. Qed.
Lemma sum_over_app {A} (f : A -> R) xs ys : sum_over f (xs ++ ys) = sum_over f xs + sum_over f ys.
Proof. induction xs as [|x xs IH]; simpl; [lra|]. rewrite IH. lra. Qed.
Lemma sum_over_map {A B} (f : A -> R) (h : B -> A) xs : sum_over f (map h xs) = sum_over (fun x => f (h x)) xs.
Proof. induction xs as [|x xs IH]; simpl; congruence. Qed.
Lemma sum_over_scale {A} c (f : A -> R) xs : sum_over (fun x => c * f x) xs = c * sum_over f xs.
Proof. induction xs as [|x xs IH]; simpl; [lra|]. rewrite IH. lra. Qed.
Lemma sum_over_plus {A} (f g : A -> R) xs : sum_over (fun x => f x + g x) xs = sum_over f xs + sum_over g xs.
Proof. induction xs as [|x xs IH]; simpl; [lra|]. rewrite IH. lra. Qed.

(* More values, repeated or not, do not make a sum smaller. *)
Lemma sum_over_incl {A} (f : A -> R) xs : (forall x, 0 <= f x) -> NoDup xs ->
  forall ys, incl xs ys -> sum_over f xs <= sum_over f ys.
Proof.
  intros P N. induction N as [|x xs I N IH]; intros ys H; [apply sum_over_nonnegative, P|].
  destruct (in_split x ys) as [us [vs ->]]; [apply H; left; reflexivity|].
  assert (K : incl xs (us ++ vs)).
  { intros y Y. generalize (H y (or_intror Y)). rewrite !in_app_iff. intros [U|[->|V]]; tauto. }
  specialize (IH _ K). rewrite sum_over_app in *. simpl. lra.
Qed.

Lemma without_repeats {A} (xs : list A) : exists ys, NoDup ys /\ incl xs ys.
Proof.
  induction xs as [|x xs [ys [N I]]]; [exists []; split; [constructor|apply incl_refl]|].
  destruct (classic (In x ys)) as [X|X].
  - exists ys. split; [exact N|]. intros y [<-|Y]; auto.
  - exists (x :: ys). split; [constructor; assumption|]. intros y [<-|Y]; [left; reflexivity|right; auto].
Qed.

Lemma no_repeats_together {A} (xs ys : list A) : NoDup xs -> NoDup ys -> (forall x, In x xs -> ~ In x ys)
  -> NoDup (xs ++ ys).
Proof.
  intros N M D. induction N as [|x xs I N IH]; simpl in *; [exact M|]. constructor; [|apply IH; auto].
  rewrite in_app_iff. intros [H|H]; [auto|]. apply (D x); auto.
Qed.

(* What is known of the terms, or of others that an injection leads to. *)
Lemma at_most_le {A} (f g : A -> R) b : (forall x, f x <= g x) -> sum_at_most g b -> sum_at_most f b.
Proof. intros H G xs N. eapply Rle_trans; [apply sum_over_le, H|apply G, N]. Qed.
Lemma at_most_grows {A} (f : A -> R) b c : b <= c -> sum_at_most f b -> sum_at_most f c.
Proof. intros H F xs N. eapply Rle_trans; [apply F, N|exact H]. Qed.
Lemma at_most_plus {A} (f g : A -> R) b c : sum_at_most f b -> sum_at_most g c
  -> sum_at_most (fun x => f x + g x) (b + c).
Proof. intros F G xs N. rewrite sum_over_plus. apply Rplus_le_compat; auto. Qed.
Lemma at_most_scale {A} c (f : A -> R) b : 0 <= c -> sum_at_most f b -> sum_at_most (fun x => c * f x) (c * b).
Proof. intros C F xs N. rewrite sum_over_scale. apply Rmult_le_compat_l; auto. Qed.
Lemma at_most_through {A B} (h : B -> A) (f : A -> R) b : Injective h -> sum_at_most f b
  -> sum_at_most (fun y => f (h y)) b.
Proof. intros I F ys N. rewrite <- sum_over_map. apply F, Injective_map_NoDup; assumption. Qed.

Lemma is_sum_ext {A} (f g : A -> R) s : (forall x, f x = g x) -> is_sum f s -> is_sum g s.
Proof.
  intros E [U L]. split; [apply (at_most_le _ f); [intros; rewrite E; lra|exact U]|].
  intros b G. apply L. apply (at_most_le _ g); [intros; rewrite E; lra|exact G].
Qed.

(* Of terms that are zero but for those of a list. *)
Lemma is_sum_of_some {A} (f : A -> R) xs : (forall x, 0 <= f x) -> NoDup xs -> (forall x, f x <> 0 -> In x xs)
  -> is_sum f (sum_over f xs).
Proof.
  intros P N H. split; [|intros b B; apply B, N]. intros ys M.
  assert (Z : exists zs, NoDup zs /\ incl zs ys /\ incl zs xs /\ sum_over f ys = sum_over f zs).
  { induction M as [|y ys I M [zs [NZ [J [K E]]]]].
    - exists []. repeat split; [constructor|apply incl_nil_l|apply incl_nil_l].
    - destruct (classic (f y = 0)) as [Y|Y]; [exists zs|exists (y :: zs)]; simpl; rewrite E;
        repeat split; auto using incl_tl, incl_cons, in_eq; [lra|]. constructor; [|exact NZ]. intros X. apply I, J, X. }
  destruct Z as [zs [NZ [_ [K ->]]]]. apply sum_over_incl; assumption.
Qed.

Lemma is_sum_of_zeros {A} : is_sum (fun _ : A => 0) 0.
Proof. apply (is_sum_of_some _ []); [intros; lra|constructor|contradiction]. Qed.

Lemma is_sum_scale {A} c (f : A -> R) s : 0 <= c -> is_sum f s -> is_sum (fun x => c * f x) (c * s).
Proof.
  intros C [U L]. split; [apply at_most_scale; assumption|]. intros b H. destruct C as [C|<-].
  - apply Rmult_le_reg_l with (/ c); [apply Rinv_0_lt_compat, C|]. rewrite <- Rmult_assoc, Rinv_l, Rmult_1_l by lra.
    apply L. intros xs N. apply Rmult_le_reg_l with c; [exact C|]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
    rewrite <- sum_over_scale. apply H, N.
  - rewrite Rmult_0_l. apply (H [] (NoDup_nil _)).
Qed.

Lemma is_sum_plus {A} (f g : A -> R) s u : (forall x, 0 <= f x) -> (forall x, 0 <= g x) -> is_sum f s -> is_sum g u
  -> is_sum (fun x => f x + g x) (s + u).
Proof.
  intros F G [FU FL] [GU GL]. split; [apply at_most_plus; assumption|]. intros b H.
  assert (s <= b - u); [|lra]. apply FL. intros xs N. assert (u <= b - sum_over f xs); [|lra]. apply GL. intros ys M.
  destruct (without_repeats (xs ++ ys)) as [zs [Z I]]. generalize (H zs Z). rewrite sum_over_plus.
  apply incl_app_inv in I. generalize (sum_over_incl f xs F N zs (proj1 I)) (sum_over_incl g ys G M zs (proj2 I)). lra.
Qed.

Lemma is_sum_through {A B} (h : B -> A) (k : A -> B) (f : A -> R) s : (forall y, k (h y) = y)
  -> (forall x, h (k x) = x) -> is_sum f s -> is_sum (fun y => f (h y)) s.
Proof.
  intros KH HK [U L]. split.
  - apply at_most_through; [|exact U]. intros x y E. rewrite <- (KH x), E. apply KH.
  - intros b H. apply L. apply (at_most_le _ (fun x => f (h (k x)))); [intros; rewrite HK; lra|].
    apply (at_most_through k (fun y => f (h y))); [|exact H]. intros x y E. rewrite <- (HK x), E. apply HK.
Qed.

(* Sums of sums. *)
Lemma sum_over_pairs {A B} (f : A * B -> R) xs ys :
  sum_over f (list_prod xs ys) = sum_over (fun x => sum_over (fun y => f (x, y)) ys) xs.
Proof. induction xs as [|x xs IH]; simpl; [reflexivity|]. rewrite sum_over_app, sum_over_map, IH. reflexivity. Qed.

Lemma sums_at_most {A B} (f : A * B -> R) g b : (forall p, 0 <= f p) ->
  (forall x, sum_at_most (fun y => f (x, y)) (g x)) -> sum_at_most g b -> sum_at_most f b.
Proof.
  intros P F G ps N. destruct (without_repeats (map fst ps)) as [xs [X IX]].
  destruct (without_repeats (map snd ps)) as [ys [Y IY]]. apply Rle_trans with (sum_over f (list_prod xs ys)).
  - apply sum_over_incl; [exact P|exact N|]. intros [x y] H. apply in_prod; [apply IX|apply IY].
    + apply (in_map fst _ _ H).
    + apply (in_map snd _ _ H).
  - rewrite sum_over_pairs. apply Rle_trans with (sum_over g xs); [|apply G, X]. apply sum_over_le. intros x.
    apply F, Y.
Qed.

Lemma sums_within {A B} (f : A * B -> R) g b : (forall x, is_sum (fun y => f (x, y)) (g x)) -> sum_at_most f b
  -> sum_at_most g b.
Proof.
  intros F H. assert (Some : forall xs, NoDup xs -> forall ps, NoDup ps -> (forall p, In p ps -> ~ In (fst p) xs) ->
    sum_over g xs + sum_over f ps <= b).
  { intros xs N. induction N as [|x xs I N IH]; intros ps M D; simpl; [rewrite Rplus_0_l; apply H, M|].
    assert (g x <= b - (sum_over g xs + sum_over f ps)); [|lra]. apply (F x). intros ys Y.
    rewrite <- (sum_over_map f). specialize (IH (map (pair x) ys ++ ps)). rewrite sum_over_app in IH.
    enough (sum_over g xs + (sum_over f (map (pair x) ys) + sum_over f ps) <= b) by lra. apply IH.
    - apply no_repeats_together; [apply Injective_map_NoDup; [congruence|exact Y]|exact M|].
      intros p E Q. apply in_map_iff in E. destruct E as [y [<- _]]. apply (D _ Q). left. reflexivity.
    - intros p E Q. apply in_app_iff in E. destruct E as [E|E]; [|apply (D _ E); right; exact Q].
      apply in_map_iff in E. destruct E as [y [<- _]]. apply I, Q. }
  intros xs N. generalize (Some xs N [] (NoDup_nil _) ltac:(contradiction)). simpl. lra.
Qed.

Lemma is_sum_of_sums {A B} (f : A * B -> R) g s : (forall p, 0 <= f p) ->
  (forall x, is_sum (fun y => f (x, y)) (g x)) -> is_sum g s -> is_sum f s.
Proof.
  intros P F [U L]. split; [apply (sums_at_most f g); [exact P|intros; apply F|exact U]|].
  intros b H. apply L, (sums_within f); assumption.
Qed.

Lemma is_sum_of_products {A B} (f : A -> R) (g : B -> R) s u : (forall x, 0 <= f x) -> (forall y, 0 <= g y) ->
  is_sum f s -> is_sum g u -> is_sum (fun p => f (fst p) * g (snd p)) (s * u).
Proof.
  intros F G S U. apply (is_sum_of_sums _ (fun x => u * f x)).
  - intros p. apply Rmult_le_pos; auto.
  - intros x. rewrite (Rmult_comm u). apply (is_sum_scale (f x)); auto.
  - rewrite (Rmult_comm s). apply is_sum_scale; [apply (proj1 U [] (NoDup_nil _))|exact S].
Qed.

Lemma one_term_at_most {A} (f : A -> R) v : 0 <= f v -> (forall x, x <> v -> f x = 0) -> sum_at_most f (f v).
Proof.
  intros P Z. rewrite <- (Rplus_0_r (f v)). apply (is_sum_of_some f [v]).
  - intros x. destruct (classic (x = v)) as [->|N]; [exact P|rewrite Z by exact N; lra].
  - repeat constructor. simpl. tauto.
  - intros x N. destruct (classic (x = v)) as [->|X]; [left; reflexivity|destruct (N (Z x X))].
Qed.

Lemma is_sum_of_two (f : bool -> R) : (forall x, 0 <= f x) -> is_sum f (f true + f false).
Proof.
  intros P. replace (f true + f false) with (sum_over f [true; false]) by (simpl; ring).
  apply is_sum_of_some; [exact P| |].
  - repeat constructor; simpl; intuition discriminate.
  - intros [] _; simpl; auto.
Qed.

(* Over one value and those that an injection leads to. *)
Section One.
Context {A B : Type} (o : A) (c : B -> A).
Hypothesis cover : forall x, x = o \/ exists y, x = c y.

Lemma one_and_rest_at_most f b : (forall x, 0 <= f x) -> sum_at_most (fun y => f (c y)) b -> sum_at_most f (f o + b).
Proof.
  intros P H xs N. assert (E : exists ys, incl xs (o :: map c ys)).
  { clear N. induction xs as [|x xs [ys I]]; [exists []; apply incl_nil_l|]. destruct (cover x) as [->|[y ->]].
    - exists ys. apply incl_cons; [left; reflexivity|exact I].
    - exists (y :: ys). apply incl_cons; [right; left; reflexivity|]. intros z Z. destruct (I z Z); simpl; auto. }
  destruct E as [ys I]. destruct (without_repeats ys) as [zs [M J]].
  apply Rle_trans with (sum_over f (o :: map c zs)).
  - apply sum_over_incl; [exact P|exact N|]. intros x X. destruct (I x X) as [<-|Y]; [left; reflexivity|right].
    apply (incl_map c J), Y.
  - simpl. rewrite sum_over_map. apply Rplus_le_compat_l, H, M.
Qed.

Lemma is_sum_of_one_and_rest f s : Injective c -> (forall y, c y <> o) -> (forall x, 0 <= f x)
  -> is_sum (fun y => f (c y)) s -> is_sum f (f o + s).
Proof.
  intros I D P [U L]. split; [apply one_and_rest_at_most; assumption|]. intros b H.
  assert (s <= b - f o); [|lra]. apply L. intros ys N. generalize (H (o :: map c ys)). simpl. rewrite sum_over_map.
  intros K. enough (f o + sum_over (fun y => f (c y)) ys <= b) by lra. apply K.
  constructor; [|apply Injective_map_NoDup; assumption]. intros E. apply in_map_iff in E. destruct E as [y [E _]].
  apply (D y E).
Qed.
End One.

(* Lists are empty, or have a head and a tail. *)
Lemma lists_at_most {A} (f : list A -> R) b : (forall xs, 0 <= f xs) -> sum_at_most (fun p => f (fst p :: snd p)) b
  -> sum_at_most f (f [] + b).
Proof.
  apply (one_and_rest_at_most [] (fun p => fst p :: snd p)).
  intros [|x xs]; [left|right; exists (x, xs)]; reflexivity.
Qed.

Lemma is_sum_of_lists {A} (f : list A -> R) s : (forall xs, 0 <= f xs) -> is_sum (fun p => f (fst p :: snd p)) s
  -> is_sum f (f [] + s).
Proof.
  apply (is_sum_of_one_and_rest [] (fun p => fst p :: snd p)); [|intros [x xs] [y ys] E; simpl in E|]; try congruence.
  intros [|x xs]; [left|right; exists (x, xs)]; reflexivity.
Qed.

(* A series is such a sum. *)
Lemma is_sum_of_series (f : nat -> R) (s : R) : (forall n, 0 <= f n) -> is_series f s -> is_sum f s.
Proof.
  intros P L. change (is_lim_seq (sum_n f) s) in L. assert (E : forall n, sum_n f n = sum_over f (seq 0 (S n))).
  { induction n as [|n IH]; [rewrite sum_O; simpl; ring|]. rewrite sum_Sn, IH, (seq_S (S n)), sum_over_app.
    unfold plus. simpl. ring. }
  split.
  - intros ns N. apply Rle_trans with (sum_n f (list_max ns)).
    + rewrite E. apply sum_over_incl; [exact P|exact N|]. intros n I. apply in_seq. split; [lia|].
      generalize (proj1 (Forall_forall _ _) (proj1 (list_max_le ns _) (Nat.le_refl _)) n I). lia.
    + apply (is_lim_seq_incr_compare _ _ L). intros m. rewrite sum_Sn. generalize (P (S m)). unfold plus. simpl. lra.
  - intros b B. apply (is_lim_seq_le (sum_n f) (fun _ => b) s b); [|exact L|apply is_lim_seq_const].
    intros n. rewrite E. apply B, seq_NoDup.
Qed.

Lemma geometric_at_most q : 0 <= q < 1 -> sum_at_most (fun n => q ^ n) (/ (1 - q)).
Proof.
  intros Q. apply is_sum_of_series; [intros; apply pow_le; lra|]. apply is_series_geom. rewrite Rabs_pos_eq; lra.
Qed.
