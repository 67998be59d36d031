(* What the model's exponential and its comparisons compute, as real numbers. *)
From Coq Require Import Reals ZArith Lia Lra Psatz Floats SpecFloat.
From Flocq Require Import Core BinarySingleNaN.
From Flocq Require IEEE754.PrimFloat.
From Interval Require Import Tactic.
From Dpnoise Require Import Rounding Exponential Model Machine.
From Dpnoise.generated Require Import Exponentials.
Open Scope R_scope.
Notation float := Coq.Floats.PrimFloat.float.

Definition bounded (x : float) (v b : R) := is x v /\ Rabs v <= b.

Lemma constant_is (x : float) s m e v : Prim2SF x = S754_finite s m e
  -> F2R (Float radix2 (cond_Zopp s (Zpos m)) e) = v -> is x v.
Proof.
  intros H V. unfold is, finite, value. rewrite <- is_finite_SF_B2SF, <- SF2R_B2SF. rewrite PrimFloat.B2SF_Prim2B, H.
  split; [reflexivity|exact V].
Qed.

Lemma step_bounded f a s c va vs vc : bounded a va 2 -> bounded s vs (1/4) -> bounded c vc (3/2) ->
  bounded (multiply_add f a s c) (rnd ((if f then va * vs else rnd (va * vs)) + vc)) 2.
Proof.
  intros [Ia Ba] [Is Bs] [Ic Bc].
  assert (P : Rabs (va * vs) <= bpow radix2 (-1)).
  { rewrite Rabs_mult. replace (bpow radix2 (-1)) with (2 * (1/4)) by (simpl; lra).
    apply Rmult_le_compat; try apply Rabs_pos; lra. }
  assert (Q : Rabs (rnd (va * vs)) <= 1/2) by (generalize (rnd_bound _ (-1) ltac:(lia) P); simpl; lra).
  assert (L : forall e x, (1 <= e)%Z -> Rabs x <= 2 -> Rabs x <= bpow radix2 e).
  { intros e x He H. eapply Rle_trans; [exact H|]. change 2 with (bpow radix2 1). apply bpow_le. exact He. }
  split.
  - apply multiply_add_is; auto; apply L; try lia; [simpl in P|]; lra.
  - change 2 with (bpow radix2 1). apply rnd_bound; [lia|]. simpl. eapply Rle_trans; [apply Rabs_triang|].
    simpl in P. destruct f; lra.
Qed.

Ltac constant := split; [eapply constant_is; [vm_compute; reflexivity|unfold F2R; simpl; lra]|apply Rabs_le; lra].
Lemma coefficient0 : bounded (coefficient 0) c0 (3/2). Proof. constant. Qed.
Lemma coefficient1 : bounded (coefficient 1) c1 (3/2). Proof. constant. Qed.
Lemma coefficient2 : bounded (coefficient 2) c2 (3/2). Proof. constant. Qed.
Lemma coefficient3 : bounded (coefficient 3) c3 (3/2). Proof. constant. Qed.
Lemma coefficient4 : bounded (coefficient 4) c4 (3/2). Proof. constant. Qed.
Lemma coefficient5 : bounded (coefficient 5) c5 (3/2). Proof. constant. Qed.
Lemma coefficient6 : bounded (coefficient 6) c6 (3/2). Proof. constant. Qed.
Lemma coefficient7 : bounded (coefficient 7) c7 (3/2). Proof. constant. Qed.
Lemma coefficient8 : bounded (coefficient 8) c8 2. Proof. constant. Qed.
Lemma coefficient9 : bounded (coefficient 9) c9 2. Proof. constant. Qed.

Ltac step square c := apply step_bounded; [|exact square|exact c].

Theorem polynomial_is f r v : is r v -> -1/2 <= v <= 1/2 -> is (polynomial f r) (rounded_polynomial f v).
Proof.
  intros I H. assert (B : Rabs v <= 1/2) by (apply Rabs_le; lra).
  assert (Q : Rabs (v * v) <= bpow radix2 (-2)).
  { rewrite Rabs_mult. replace (bpow radix2 (-2)) with (1/2 * (1/2)) by (simpl; lra).
    apply Rmult_le_compat; try apply Rabs_pos; lra. }
  assert (S : bounded (r * r)%float (rnd (v * v)) (1/4)).
  { split; [apply mul_is; auto; eapply Rle_trans; [exact Q|apply bpow_le; lia]|].
    replace (1/4) with (bpow radix2 (-2)) by (simpl; lra). apply rnd_bound; [lia|exact Q]. }
  unfold polynomial. cbv zeta.
  match goal with |- is (multiply_add f ?o r ?e) _ => set (odd := o); set (even := e) end.
  eassert (E : bounded even _ 2) by (step S coefficient0; step S coefficient2; step S coefficient4; step S coefficient6;
    exact coefficient8).
  eassert (O : bounded odd _ 2) by (step S coefficient1; step S coefficient3; step S coefficient5; step S coefficient7;
    exact coefficient9).
  destruct E as [E Be], O as [O Bo]. revert E O Be Bo. generalize even odd. clear even odd. intros even odd E O Be Bo.
  assert (W : forall ve vo, Rabs vo <= 2 -> Rabs ve <= 2 -> Rabs (vo * v) <= bpow radix2 1000
    /\ Rabs ve <= bpow radix2 1000).
  { intros ve vo Ho He. assert (bpow radix2 1 <= bpow radix2 1000) by (apply bpow_le; lia). simpl in H0.
    split; [|simpl; lra].
    rewrite Rabs_mult. apply Rle_trans with (2 * (1/2)); [apply Rmult_le_compat; try apply Rabs_pos; lra|simpl; lra]. }
  destruct (W _ _ Bo Be) as [W1 W2].
  generalize (multiply_add_is f odd r even _ _ _ O I E W1 W2). destruct f; exact (fun x => x).
Qed.

(* A rounding to [0, 1000]. *)
Lemma clamped t v : is t v -> is (if PrimFloat.ltb t 1000 then t else 1000%float) (Rmin v 1000).
Proof.
  intros I. assert (C : is 1000%float 1000) by (eapply constant_is; [vm_compute; reflexivity|unfold F2R; simpl; lra]).
  generalize (less_is t 1000%float v 1000 I C). destruct (PrimFloat.ltb t 1000).
  - intros H. rewrite Rmin_left by (apply Rlt_le, H; reflexivity). exact I.
  - intros H. rewrite Rmin_right; [exact C|]. apply Rnot_lt_le. intros N. apply H in N. discriminate.
Qed.

Definition power (f : bool) (e : Z) (t : R) : R := bpow radix2 (e - whole t) * rounded_polynomial f (t - IZR (whole t)).

Theorem exp2_minus_is f e t v : is t v -> 0 <= v -> (51 <= e <= 70)%Z ->
  is (exp2_minus f e t) (rnd (power f e (Rmin v 1000))).
Proof.
  intros I P He. unfold exp2_minus. generalize (clamped t v I).
  set (c := if PrimFloat.ltb t 1000 then t else 1000%float).
  set (w := Rmin v 1000). intros C. assert (B : 0 <= w <= 1000).
  { unfold w. split; [apply Rmin_glb; lra|apply Rmin_r]. }
  cbv zeta. assert (R : is rounder (IZR 6755399441055744)) by (eapply constant_is; [vm_compute;
    reflexivity|unfold F2R; simpl; lra]).
  assert (L : forall x, Rabs x <= IZR (2 ^ 60) -> Rabs x <= bpow radix2 1020).
  { intros x H. eapply Rle_trans; [exact H|]. change (IZR (2 ^ 60)) with (bpow radix2 60). apply bpow_le. lia. }
  generalize (whole_range w B) (whole_near w); intros K N. apply Rabs_le_inv in N.
  assert (IZR (whole w) <= 1001) by (apply IZR_le; lia). assert (0 <= IZR (whole w)) by (apply IZR_le; lia).
  assert (S : is (c + rounder)%float (IZR (whole w + 6755399441055744))).
  { rewrite <- rounded_sum by lra. apply add_is; auto. apply L. apply Rabs_le. simpl. lra. }
  assert (D : is (c + rounder - rounder)%float (IZR (whole w))).
  { rewrite <- (whole_back w B), rounded_sum by lra. apply sub_is; auto. rewrite plus_IZR. apply L. apply Rabs_le.
    simpl. lra. }
  assert (T : is (c - (c + rounder - rounder))%float (w - IZR (whole w))).
  { rewrite <- (rest_exact w (is_double _ _ C) B), (whole_back w B). apply sub_is; auto. apply L. apply Rabs_le.
    simpl. lra. }
  rewrite (integer_of_is _ _ S) by lia.
  replace ((e + 1023 - (whole w + 6755399441055744)) mod 2 ^ 12)%Z with (e + 1023 - whole w)%Z.
  2: { apply Z.mod_unique with (-(6755399441055744 / 2 ^ 12))%Z; [left; lia|].
       replace 6755399441055744%Z with (2 ^ 12 * (6755399441055744 / 2 ^ 12))%Z at 1 by reflexivity. lia. }
  replace (e + 1023 - whole w - 1023)%Z with (e - whole w)%Z by ring.
  assert (Y : -1/2 <= w - IZR (whole w) <= 1/2) by lra.
  generalize (polynomial_is f _ _ T Y). intros V.
  unfold power. apply mul_is; [apply power_is; lia|exact V|].
  generalize (rounded_polynomial_error f _ Y) (polynomial_error _ Y). intros E1 E2.
  set (p := rounded_polynomial f (w - IZR (whole w))) in *. set (r := w - IZR (whole w)) in *.
  assert (X : Rabs p <= bpow radix2 1).
  { apply Rabs_le_inv in E1. apply Rabs_le. simpl. assert (0 <= exact r <= 3/2); [|lra].
    clear - E2 Y. apply Rabs_le_inv in E2. assert (G : 7/10 <= exp (r * ln 2)) by interval.
    split; [apply Rnot_lt_le; intros Z|apply Rnot_lt_le; intros Z]; nra. }
  rewrite Rabs_mult, (Rabs_pos_eq _ (bpow_ge_0 _ _)).
  apply Rle_trans with (bpow radix2 (e - whole w) * bpow radix2 1); [apply Rmult_le_compat_l;
    [apply bpow_ge_0|exact X]|].
  rewrite <- bpow_plus. apply bpow_le. lia.
Qed.
