(* The laws by which one of finitely many candidates is chosen: the exponential mechanism, among runs of candidates too,
   and permute-and-flip. *)
From Coq Require Import Reals List Permutation Lia Lra.
From Flocq Require Import Core.
Import ListNotations.
Open Scope R_scope.

Definition total : list R -> R := fold_right Rplus 0.

(* Candidate i of weights that are not negative: its part of their sum. *)
Definition share (weights : list R) (i : nat) : R := nth i weights 0 / total weights.

(* The exponential mechanism on a scale b, for scores in the same unit. *)
Definition softmax (b : R) (scores : list R) : nat -> R := share (map (fun r => exp (r / b)) scores).

(* The same for runs, each a number of candidates and the score of each of them. *)
Definition softmax_of_runs (b : R) (runs : list (nat * R)) : nat -> R :=
  share (map (fun '(length, r) => INR length * exp (r / b)) runs).
Definition points : list (nat * R) -> list R := flat_map (fun '(length, r) => repeat r length).

(* The mean over independent coins, of which each shows heads with its own probability. *)
Fixpoint flips (coins : list R) (f : list bool -> R) : R :=
  match coins with
  | [] => f []
  | w :: coins =>
      w * flips coins (fun heads => f (true :: heads)) + (1 - w) * flips coins (fun heads => f (false :: heads))
  end.

(* Uniform among the candidates whose coins show heads. *)
Definition heads_of (heads : list bool) : nat := length (filter (fun is_head => is_head) heads).
Definition uniform_of_heads (coins : list R) (i : nat) : R :=
  flips coins (fun heads => if nth i heads false then / INR (heads_of heads) else 0).

(* Permute-and-flip: the coin of a candidate shows heads with e^-(its distance from the best score / b). *)
Definition best (scores : list R) : R := fold_right Rmax (hd 0 scores) scores.
Definition coins (b : R) (scores : list R) : list R := map (fun r => exp (- ((best scores - r) / b))) scores.
Definition permute_and_flip (b : R) (scores : list R) : nat -> R := uniform_of_heads (coins b scores).

(* A list without the item at a place. *)
Fixpoint without {A} (i : nat) (l : list A) : list A :=
  match l, i with [], _ => [] | _ :: l, O => l | a :: l, S i => a :: without i l end.

(* All laws of a choice are distributions. *)
Definition is_distribution (count : nat) (law : nat -> R) : Prop :=
  (forall i, 0 <= law i) /\ total (map law (seq 0 count)) = 1.

Lemma all_in_order {A} (d : A) l : map (fun i => nth i l d) (seq 0 (length l)) = l.
Proof.
  induction l as [|a l IH]; [reflexivity|]. cbn [length seq map nth]. rewrite <- seq_shift, map_map. f_equal. exact IH.
Qed.

Lemma nth_of_map {A B} (f : A -> B) l i d e : (i < length l)%nat -> nth i (map f l) e = f (nth i l d).
Proof. intros I. rewrite (nth_indep _ e (f d)) by (rewrite map_length; exact I). apply map_nth. Qed.

Lemma total_scales {A} c (f : A -> R) l : total (map (fun i => f i * c) l) = total (map f l) * c.
Proof. unfold total. induction l as [|i l IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma total_in_parts l m : total (l ++ m) = total l + total m.
Proof. unfold total. induction l as [|x l IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma total_in_any_order l m : Permutation l m -> total l = total m.
Proof. unfold total. induction 1; simpl in *; lra. Qed.

Lemma total_is_positive l : Forall (Rle 0) l -> 0 <= total l.
Proof. unfold total. induction 1; simpl; lra. Qed.

Theorem shares_are_a_distribution weights : Forall (Rle 0) weights -> 0 < total weights ->
  is_distribution (length weights) (share weights).
Proof.
  intros P T. split.
  - intros i. apply Rmult_le_pos; [|apply Rlt_le, Rinv_0_lt_compat, T].
    destruct (nth_in_or_default i weights 0) as [H| ->]; [|lra]. rewrite Forall_forall in P. apply P, H.
  - unfold share, Rdiv. rewrite total_scales, all_in_order. apply Rinv_r. lra.
Qed.

Lemma exponentials_are_positive b scores : scores <> [] -> 0 < total (map (fun r => exp (r / b)) scores).
Proof.
  destruct scores as [|r scores]; [congruence|]. intros _. simpl.
  assert (0 <= total (map (fun r => exp (r / b)) scores)); [|generalize (exp_pos (r / b)); lra].
  apply total_is_positive, Forall_map, Forall_forall. intros. apply Rlt_le, exp_pos.
Qed.

Theorem softmax_is_a_distribution b scores : scores <> [] -> is_distribution (length scores) (softmax b scores).
Proof.
  intros N. unfold softmax. rewrite <- (map_length (fun r => exp (r / b))).
  apply shares_are_a_distribution; [|apply exponentials_are_positive, N].
  apply Forall_map, Forall_forall. intros. apply Rlt_le, exp_pos.
Qed.

(* A candidate of a run has the part of it that the law of all candidates gives it. *)
Lemma total_of_repeated {A} (f : A -> R) n r : total (map f (repeat r n)) = INR n * f r.
Proof. unfold total. induction n as [|n IH]; [simpl; ring|]. rewrite S_INR. simpl. rewrite IH. ring. Qed.

Lemma total_of_points f runs :
  total (map f (points runs)) = total (map (fun '(length, r) => INR length * f r) runs).
Proof.
  induction runs as [|[n r] runs IH]; [reflexivity|]. simpl. unfold points in *.
  rewrite map_app, total_in_parts, IH, total_of_repeated. reflexivity.
Qed.

Theorem runs_have_the_law_of_points b before n r after k : (k < n)%nat -> let runs := before ++ (n, r) :: after in
  softmax b (points runs) (length (points before) + k) = softmax_of_runs b runs (length before) / INR n.
Proof.
  intros K runs. assert (N : INR n <> 0) by (apply not_0_INR; lia).
  unfold softmax, softmax_of_runs, share. rewrite total_of_points.
  replace (nth (length (points before) + k) (map (fun r => exp (r / b)) (points runs)) 0) with (exp (r / b)).
  - set (sum := total _). unfold runs. rewrite map_app, app_nth2; rewrite map_length; [|lia].
    rewrite Nat.sub_diag. cbn [map nth]. unfold Rdiv. transitivity (exp (r * / b) * / sum * (INR n * / INR n)); [|ring].
    rewrite Rinv_r by exact N. ring.
  - unfold points, runs. rewrite flat_map_app, map_app, app_nth2; rewrite map_length; [|unfold points; lia].
    replace (_ + k - _)%nat with k by (unfold points; lia). cbn [flat_map].
    rewrite map_app, app_nth1 by (rewrite map_length, repeat_length; exact K).
    rewrite (nth_of_map _ _ _ r), nth_repeat by (rewrite repeat_length; exact K). reflexivity.
Qed.

(* The mean over coins is linear, and where a coin always shows heads, others do not matter. *)
Lemma flips_ext ws : forall f g, (forall heads, length heads = length ws -> f heads = g heads) ->
  flips ws f = flips ws g.
Proof.
  induction ws as [|w ws IH]; intros f g H; simpl; [apply H; reflexivity|].
  f_equal; f_equal; apply IH; intros heads L; apply H; simpl; congruence.
Qed.

Lemma flips_agree ws : forall f g, In 1 ws ->
  (forall heads, length heads = length ws -> In true heads -> f heads = g heads) -> flips ws f = flips ws g.
Proof.
  induction ws as [|w ws IH]; intros f g One H; [destruct One|]. destruct One as [-> |I]; simpl.
  - rewrite Rminus_diag_eq, !Rmult_0_l by reflexivity. f_equal. f_equal. apply flips_ext. intros heads L.
    apply H; simpl; [congruence|tauto].
  - f_equal; f_equal; apply IH; try exact I; intros heads L T; apply H; simpl; congruence || tauto.
Qed.

Lemma flips_const ws c : flips ws (fun _ => c) = c.
Proof. induction ws as [|w ws IH]; simpl; [reflexivity|]. rewrite IH. ring. Qed.

Lemma flips_plus ws : forall f g, flips ws (fun heads => f heads + g heads) = flips ws f + flips ws g.
Proof. induction ws as [|w ws IH]; intros f g; simpl; [reflexivity|]. rewrite !IH. ring. Qed.

Lemma flips_scale ws c : forall f, flips ws (fun heads => c * f heads) = c * flips ws f.
Proof. induction ws as [|w ws IH]; intros f; simpl; [reflexivity|]. rewrite !IH. ring. Qed.

Lemma flips_are_positive ws : Forall (fun w => 0 <= w <= 1) ws -> forall f, (forall heads, 0 <= f heads) ->
  0 <= flips ws f.
Proof.
  induction 1 as [|w ws W _ IH]; intros f F; simpl; [apply F|].
  apply Rplus_le_le_0_compat; apply Rmult_le_pos; try lra; apply IH; intros; apply F.
Qed.

Lemma total_of_flips ws (f : nat -> list bool -> R) l :
  total (map (fun i => flips ws (f i)) l) = flips ws (fun heads => total (map (fun i => f i heads) l)).
Proof. induction l as [|i l IH]; simpl; [rewrite flips_const; reflexivity|]. rewrite flips_plus, IH. reflexivity. Qed.

Lemma heads_are_counted heads : In true heads -> (0 < heads_of heads)%nat.
Proof.
  intros T. assert (I : In true (filter (fun is_head => is_head) heads)) by (apply filter_In; tauto).
  unfold heads_of. destruct (filter _ heads); [contradiction|simpl; lia].
Qed.

Lemma head_is_counted heads i : nth i heads false = true -> (0 < heads_of heads)%nat.
Proof.
  intros E. apply heads_are_counted. rewrite <- E. apply nth_In, Nat.nle_gt. intros L.
  rewrite nth_overflow in E by exact L. discriminate.
Qed.

Theorem uniform_of_heads_is_a_distribution ws : Forall (fun w => 0 <= w <= 1) ws -> In 1 ws ->
  is_distribution (length ws) (uniform_of_heads ws).
Proof.
  intros W One. split.
  - intros i. apply flips_are_positive; [exact W|]. intros heads. destruct (nth i heads false) eqn:E; [|lra].
    apply Rlt_le, Rinv_0_lt_compat, lt_0_INR, (head_is_counted _ _ E).
  - unfold uniform_of_heads. rewrite total_of_flips, <- (flips_const ws 1). apply flips_agree; [exact One|].
    intros heads <- T.
    rewrite (map_ext _ (fun i => (if nth i heads false then 1 else 0) * / INR (heads_of heads))).
    2: { intros i. destruct (nth i heads false); ring. }
    rewrite total_scales.
    rewrite <- (map_map (fun i => nth i heads false) (fun is_head : bool => if is_head then 1 else 0)), all_in_order.
    replace (total _) with (INR (heads_of heads)).
    + apply heads_are_counted in T. apply Rinv_r, not_0_INR. lia.
    + clear. unfold heads_of, total. induction heads as [|[|] heads IH]; [reflexivity| |];
        cbn [filter length map fold_right]; rewrite ?S_INR, IH; ring.
Qed.

Lemma at_most_best scores r : In r scores -> r <= best scores.
Proof.
  unfold best. generalize (hd 0 scores). induction scores as [|s scores IH]; intros d H; destruct H; simpl;
    [subst; apply Rmax_l|].
  eapply Rle_trans; [apply IH; assumption|apply Rmax_r].
Qed.

Lemma best_is_there scores : scores <> [] -> In (best scores) scores.
Proof.
  assert (H : forall d l, In (fold_right Rmax d l) (d :: l)).
  { clear. induction l as [|s l IH]; [left; reflexivity|]. cbn [fold_right].
    destruct (Rmax_case_strong s (fold_right Rmax d l) (fun m => m = s \/ m = fold_right Rmax d l)) as [->| ->]; auto;
      destruct IH; simpl; auto. }
  destruct scores as [|s scores]; [congruence|]. intros _.
  destruct (H s (s :: scores)) as [E|I]; [left; exact E|exact I].
Qed.

Lemma coins_are_probabilities b scores : 0 < b -> Forall (fun w => 0 < w <= 1) (coins b scores).
Proof.
  intros B. apply Forall_map, Forall_forall. intros r H. split; [apply exp_pos|]. rewrite <- exp_0.
  apply Raux.exp_le. apply at_most_best in H.
  assert (0 <= (best scores - r) / b) by (apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat, B]). lra.
Qed.

Theorem permute_and_flip_is_a_distribution b scores : 0 < b -> scores <> [] ->
  is_distribution (length scores) (permute_and_flip b scores).
Proof.
  intros B N. unfold permute_and_flip. replace (length scores) with (length (coins b scores)) by apply map_length.
  apply uniform_of_heads_is_a_distribution.
  { eapply Forall_impl; [|apply coins_are_probabilities, B]. simpl. intros. lra. }
  replace 1 with (exp (- ((best scores - best scores) / b))); [apply in_map_iff; exists (best scores)|].
  - split; [reflexivity|apply best_is_there, N].
  - unfold Rdiv. rewrite Rminus_diag_eq, Rmult_0_l, Ropp_0 by reflexivity. apply exp_0.
Qed.
