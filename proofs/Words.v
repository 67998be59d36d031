(* Means over uniform random words: the expectation of a function of k fair bits. *)
From Coq Require Import Reals ZArith Lia Lra.
Open Scope R_scope.

Definition one (b : bool) : R := if b then 1 else 0.

Fixpoint mean (k : nat) (g : Z -> R) : R :=
  match k with
  | O => g 0%Z
  | S k => (mean k (fun w => g (2 * w)%Z) + mean k (fun w => g (2 * w + 1)%Z)) / 2
  end.

(* The sum over all words. *)
Fixpoint sum (k : nat) (g : Z -> Z) : Z :=
  match k with
  | O => g 0
  | S k => sum k (fun w => g (2 * w)) + sum k (fun w => g (2 * w + 1))
  end%Z.

Notation "2^ k" := (2 ^ Z.of_nat k)%Z (at level 30).

Lemma pow_S k : 2^ (S k) = (2 * 2^ k)%Z.
Proof. rewrite Nat2Z.inj_succ, Z.pow_succ_r; lia. Qed.

Lemma pow_positive k : (0 < 2^ k)%Z.
Proof. apply Z.pow_pos_nonneg; lia. Qed.

Lemma mean_ext k g h : (forall w, (0 <= w < 2^ k)%Z -> g w = h w) -> mean k g = mean k h.
Proof.
  revert g h. induction k as [|k IH]; intros g h H; cbn [mean]; [apply H; simpl; lia|]. rewrite pow_S in H.
  rewrite (IH (fun w => g (2 * w)%Z) (fun w => h (2 * w)%Z)),
    (IH (fun w => g (2 * w + 1)%Z) (fun w => h (2 * w + 1)%Z));
    [reflexivity| |]; intros w W; apply H; lia.
Qed.

Lemma mean_const k c : mean k (fun _ => c) = c.
Proof. induction k; cbn [mean]; [reflexivity|]. rewrite IHk. lra. Qed.

Lemma mean_scale k c g : mean k (fun w => c * g w) = c * mean k g.
Proof. revert g. induction k; intros g; cbn [mean]; [reflexivity|]. rewrite !IHk. lra. Qed.

Lemma mean_scale_right k c g : mean k (fun w => g w * c) = mean k g * c.
Proof. rewrite Rmult_comm, <- mean_scale. apply mean_ext. intros. ring. Qed.

Lemma mean_plus k g h : mean k (fun w => g w + h w) = mean k g + mean k h.
Proof. revert g h. induction k; intros g h; cbn [mean]; [reflexivity|]. rewrite !IHk. lra. Qed.

Lemma mean_le k : forall g h, (forall w, (0 <= w < 2^ k)%Z -> g w <= h w) -> mean k g <= mean k h.
Proof.
  induction k as [|k IH]; intros g h H; cbn [mean]; [apply H; simpl; lia|]. rewrite pow_S in H.
  assert (mean k (fun w => g (2 * w)%Z) <= mean k (fun w => h (2 * w)%Z)) by (apply IH; intros; apply H; lia).
  assert (mean k (fun w => g (2 * w + 1)%Z) <= mean k (fun w => h (2 * w + 1)%Z)) by (apply IH; intros; apply H; lia).
  lra.
Qed.

(* A word is its upper bits and its lower ones. *)
Lemma mean_split j k g : mean (j + k) g = mean k (fun high => mean j (fun low => g (high * 2^ j + low)%Z)).
Proof.
  revert g. induction j as [|j IH]; intros g.
  - apply mean_ext. intros w _. cbn [mean]. f_equal. simpl. lia.
  - cbn [mean Nat.add]. rewrite !IH. unfold Rdiv. rewrite (Rmult_comm _ (/ 2)), <- mean_plus, <- mean_scale.
    apply mean_ext. intros w _.
    rewrite (Rmult_comm _ (/ 2)). f_equal. rewrite pow_S.
    f_equal; apply mean_ext; intros v _; f_equal; lia.
Qed.

Lemma mean_integers k g : mean k (fun w => IZR (g w)) = IZR (sum k g) / IZR (2^ k).
Proof.
  revert g. induction k as [|k IH]; intros g.
  - simpl. lra.
  - cbn [mean sum]. rewrite (IH (fun w => g (2 * w)%Z)), (IH (fun w => g (2 * w + 1)%Z)), pow_S, plus_IZR, mult_IZR.
    field.
    apply Rgt_not_eq, (IZR_lt 0), pow_positive.
Qed.

Lemma sum_below k T : (0 <= T <= 2^ k)%Z -> sum k (fun w => if w <? T then 1 else 0)%Z = T.
Proof.
  revert T. induction k as [|k IH]; intros T H.
  - simpl in *. destruct (0 <? T)%Z eqn:E; [apply Z.ltb_lt in E|apply Z.ltb_ge in E]; lia.
  - rewrite pow_S in H. cbn [sum].
    assert (ext : forall g h, (forall w, g w = h w) -> sum k g = sum k h).
    { clear. induction k; intros g h E; cbn [sum]; [apply E|].
      rewrite (IHk (fun w => g (2 * w)%Z) (fun w => h (2 * w)%Z)) by (intros; apply E).
      rewrite (IHk (fun w => g (2 * w + 1)%Z) (fun w => h (2 * w + 1)%Z)) by (intros; apply E). reflexivity. }
    rewrite (ext (fun w => if 2 * w <? T then 1 else 0)%Z (fun w => if w <? (T + 1) / 2 then 1 else 0)%Z).
    2: { intros w. destruct (2 * w <? T)%Z eqn:A, (w <? (T + 1) / 2)%Z eqn:B; try reflexivity;
         rewrite ?Z.ltb_lt, ?Z.ltb_ge in A, B; Z.to_euclidean_division_equations; lia. }
    rewrite (ext (fun w => if 2 * w + 1 <? T then 1 else 0)%Z (fun w => if w <? T / 2 then 1 else 0)%Z).
    2: { intros w. destruct (2 * w + 1 <? T)%Z eqn:A, (w <? T / 2)%Z eqn:B; try reflexivity;
         rewrite ?Z.ltb_lt, ?Z.ltb_ge in A, B; Z.to_euclidean_division_equations; lia. }
    rewrite !IH by (Z.to_euclidean_division_equations; lia). Z.to_euclidean_division_equations. lia.
Qed.

Lemma mean_below k T : (0 <= T <= 2^ k)%Z -> mean k (fun w => one (w <? T)%Z) = IZR T / IZR (2^ k).
Proof.
  intros H. transitivity (IZR (sum k (fun w => if w <? T then 1 else 0)%Z) / IZR (2^ k));
    [|rewrite sum_below by exact H; reflexivity].
  rewrite <- mean_integers. apply mean_ext. intros w _. destruct (w <? T)%Z; reflexivity.
Qed.

Lemma mean_single k y : (0 <= y < 2^ k)%Z -> mean k (fun w => one (w =? y)%Z) = 1 / IZR (2^ k).
Proof.
  intros H. replace (1 / IZR (2^ k)) with (IZR (y + 1) / IZR (2^ k) + -1 * (IZR y / IZR (2^ k))).
  - rewrite <- (mean_below k (y + 1)), <- (mean_below k y), <- mean_scale, <- mean_plus by lia. apply mean_ext.
    intros w _. unfold one.
    destruct (w =? y)%Z eqn:A, (w <? y + 1)%Z eqn:B, (w <? y)%Z eqn:C; rewrite ?Z.eqb_eq, ?Z.eqb_neq, ?Z.ltb_lt,
      ?Z.ltb_ge in A, B, C; lra || lia.
  - rewrite plus_IZR. field. apply Rgt_not_eq, (IZR_lt 0), pow_positive.
Qed.

(* The lower bits of a word are uniform. *)
Lemma mean_lower j k y : (0 <= y < 2^ j)%Z -> mean (j + k) (fun w => one (Z.land w (2^ j - 1) =? y)%Z) = 1 / IZR (2^ j).
Proof.
  intros H. rewrite mean_split, <- (mean_single j y H), <- (mean_const k (mean j _)). apply mean_ext. intros high _.
  apply mean_ext.
  intros low L. f_equal. f_equal. rewrite Z.sub_1_r, <- Z.ones_equiv, Z.land_ones by lia.
  rewrite Z.add_comm, Z.mod_add by lia.
  apply Z.mod_small, L.
Qed.
