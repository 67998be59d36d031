(* What the primitive floats of the model compute, as real numbers. *)
From Coq Require Import Reals ZArith Lia Lra Psatz Floats Uint63 SpecFloat.
From Flocq Require Import Core BinarySingleNaN.
From Flocq Require IEEE754.PrimFloat.
From Dpnoise Require Import Rounding Model.
Open Scope R_scope.
Import IEEE754.PrimFloat.
Notation float := Coq.Floats.PrimFloat.float.

(* The value of a finite float. *)
Definition value (x : float) : R := B2R (Prim2B x).
Definition finite (x : float) := BinarySingleNaN.is_finite (Prim2B x) = true.
Definition is (x : float) (v : R) := finite x /\ value x = v.

Lemma is_double x v : is x v -> double v.
Proof. intros [_ <-]. apply generic_format_B2R. Qed.

Lemma below_emax x : Rabs x <= bpow radix2 1020 -> Rlt_bool (Rabs (rnd x)) (bpow radix2 emax) = true.
Proof.
  intros H. apply Rlt_bool_true. eapply Rle_lt_trans; [apply rnd_bound; [|exact H]; lia|]. apply bpow_lt. reflexivity.
Qed.

Ltac flocq theorem :=
  generalize theorem;
  change (round radix2 (SpecFloat.fexp FloatOps.prec FloatOps.emax) (round_mode mode_NE)) with rnd;
  rewrite below_emax by assumption.

Lemma mul_is x y a b : is x a -> is y b -> Rabs (a * b) <= bpow radix2 1020 -> is (x * y)%float (rnd (a * b)).
Proof.
  intros [Fx Vx] [Fy Vy] H. subst. unfold is, finite, value in *. rewrite mul_equiv.
  flocq (Bmult_correct _ _ Hprec Hmax mode_NE (Prim2B x) (Prim2B y)).
  intros [A [B _]]. rewrite Fx, Fy in B. split; assumption.
Qed.

Lemma add_is x y a b : is x a -> is y b -> Rabs (a + b) <= bpow radix2 1020 -> is (x + y)%float (rnd (a + b)).
Proof.
  intros [Fx Vx] [Fy Vy] H. subst. unfold is, finite, value in *. rewrite add_equiv.
  flocq (Bplus_correct _ _ Hprec Hmax mode_NE (Prim2B x) (Prim2B y) Fx Fy).
  intros [A [B _]]. split; assumption.
Qed.

Lemma sub_is x y a b : is x a -> is y b -> Rabs (a - b) <= bpow radix2 1020 -> is (x - y)%float (rnd (a - b)).
Proof.
  intros [Fx Vx] [Fy Vy] H. subst. unfold is, finite, value in *. rewrite sub_equiv.
  flocq (Bminus_correct _ _ Hprec Hmax mode_NE (Prim2B x) (Prim2B y) Fx Fy).
  intros [A [B _]]. split; assumption.
Qed.

Lemma less_is x y a b : is x a -> is y b -> PrimFloat.ltb x y = true <-> a < b.
Proof.
  intros [Fx Vx] [Fy Vy]. subst. rewrite ltb_equiv, Bltb_correct by assumption. unfold value.
  split; [|apply Rlt_bool_true]. intros H. apply Rnot_le_lt. intros N. rewrite Rlt_bool_false in H by exact N.
  discriminate.
Qed.

(* Integers below 2^63 are rounded to doubles. *)
Lemma float_of_is z : (0 <= z < 2 ^ 63)%Z -> is (float_of z) (rnd (IZR z)).
Proof.
  intros H. unfold is, finite, value, float_of. rewrite of_int63_equiv.
  assert (E : Uint63.to_Z (Uint63.of_Z z) = z) by (rewrite Uint63.of_Z_spec, Z.mod_small; [reflexivity|exact H]).
  rewrite E. assert (X : F2R (Float radix2 z 0) = IZR z) by (unfold F2R; simpl; ring).
  assert (B : Rabs (IZR z) <= bpow radix2 1020).
  { rewrite Rabs_pos_eq by (apply IZR_le; lia). apply Rle_trans with (bpow radix2 63); [|apply bpow_le; lia].
    change (bpow radix2 63) with (IZR (2 ^ 63)). apply IZR_le. lia. }
  generalize (binary_normalize_correct _ _ Hprec Hmax mode_NE z 0 false). cbv zeta.
  change (round radix2 (SpecFloat.fexp FloatOps.prec FloatOps.emax) (round_mode mode_NE)) with rnd.
  rewrite X, below_emax by exact B. intros [P [Q _]]. split; assumption.
Qed.

(* Powers of two, of which the exponent is that of a normal number. *)
Lemma power_is k : (-1000 <= k <= 1000)%Z -> is (Z.ldexp one k) (bpow radix2 k).
Proof.
  intros H. unfold is, finite, value. rewrite ldexp_equiv, one_equiv, Prim2B_B2Prim.
  assert (D : rnd (bpow radix2 k) = bpow radix2 k) by (apply rnd_double, generic_format_FLT_bpow; [reflexivity|lia]).
  generalize (Bldexp_correct _ _ Hprec Hmax mode_NE (@Bone _ _ Hprec Hmax) k).
  change (round radix2 (SpecFloat.fexp FloatOps.prec FloatOps.emax) (round_mode mode_NE)) with rnd.
  rewrite Bone_correct, Rmult_1_l, below_emax.
  - rewrite D, is_finite_Bone. intros [A [B _]]. split; assumption.
  - rewrite Rabs_pos_eq by apply bpow_ge_0. apply bpow_le. lia.
Qed.

(* The value of a double as its significand and exponent. *)
Lemma parts_is x v : is x v -> let '(m, e) := parts x in F2R (Float radix2 m e) = v.
Proof.
  intros [F V]. unfold parts, finite, value in *. rewrite <- B2SF_Prim2B. subst v.
  destruct (Prim2B x) as [s|s| |s m e B]; try discriminate; simpl; [unfold F2R; simpl; ring|reflexivity].
Qed.

(* The model of a conversion to an integer cuts off. *)
Lemma integer_of_floor x v : is x v -> 0 <= v -> integer_of x = Zfloor v.
Proof.
  intros [F V] H. unfold integer_of, finite, value in *. rewrite <- B2SF_Prim2B. subst v.
  destruct (Prim2B x) as [s|s| |s m e B]; try discriminate; cbn [B2SF B2R] in *; [symmetry; apply (Zfloor_IZR 0)|].
  destruct s.
  { exfalso. revert H. apply Rlt_not_le, F2R_lt_0. reflexivity. }
  cbn [cond_Zopp]. destruct (Z_le_gt_dec 0 e) as [L|G].
  - rewrite Z.shiftl_mul_pow2 by exact L. unfold F2R. cbn [Fnum Fexp]. rewrite <- IZR_Zpower by exact L.
    rewrite <- mult_IZR, Zfloor_IZR. reflexivity.
  - rewrite Z.shiftl_div_pow2, <- Zfloor_div by (try apply Z.pow_nonzero; lia). f_equal. unfold F2R. cbn [Fnum Fexp].
    change 2%Z with (radix_val radix2). rewrite IZR_Zpower, bpow_opp by lia. unfold Rdiv.
    rewrite Rinv_inv. reflexivity.
Qed.

Lemma integer_of_is x k : is x (IZR k) -> (0 < k)%Z -> integer_of x = k.
Proof. intros H P. rewrite (integer_of_floor x _ H), Zfloor_IZR by (apply IZR_le; lia). reflexivity. Qed.

Lemma multiply_add_is (fused : bool) x y z a b c : is x a -> is y b -> is z c ->
  Rabs (a * b) <= bpow radix2 1000 -> Rabs c <= bpow radix2 1000 ->
  is (multiply_add fused x y z) (rnd ((if fused then a * b else rnd (a * b)) + c)).
Proof.
  intros X Y Z P Q.
  assert (T : forall p, Rabs p <= bpow radix2 1000 -> Rabs (p + c) <= bpow radix2 1020).
  { intros p Hp. eapply Rle_trans; [apply Rabs_triang|].
    apply Rle_trans with (bpow radix2 1000 + bpow radix2 1000); [lra|].
    apply Rle_trans with (bpow radix2 1001); [|apply bpow_le; lia].
    change (bpow radix2 1001) with (bpow radix2 (1 + 1000)). rewrite bpow_plus. simpl (bpow radix2 1). lra. }
  unfold multiply_add. destruct fused.
  - generalize (parts_is x a X) (parts_is y b Y) (parts_is z c Z).
    destruct (parts x) as [ma ea], (parts y) as [mb eb], (parts z) as [mc ec]. intros A B C.
    set (e := Z.min (ea + eb) ec). set (m := (Z.shiftl (ma * mb) (ea + eb - e) + Z.shiftl mc (ec - e))%Z).
    assert (V : F2R (Float radix2 m e) = a * b + c).
    { rewrite <- A, <- B, <- C. unfold F2R, m. cbv [Fnum Fexp].
      rewrite !Z.shiftl_mul_pow2 by (unfold e; lia). rewrite plus_IZR, !mult_IZR.
      change 2%Z with (radix_val radix2). rewrite !IZR_Zpower by (unfold e; lia).
      rewrite Rmult_plus_distr_r, !Rmult_assoc, <- !bpow_plus.
      replace (ea + eb - e + e)%Z with (ea + eb)%Z by ring. replace (ec - e + e)%Z with ec by ring.
      rewrite bpow_plus. ring. }
    generalize (binary_normalize_correct _ _ Hprec Hmax mode_NE m e false). cbv zeta.
    change (round radix2 (SpecFloat.fexp FloatOps.prec FloatOps.emax) (round_mode mode_NE)) with rnd.
    rewrite V, below_emax by (apply T; exact P). intros [D [F _]].
    unfold is, finite, value. rewrite binary_normalize_equiv.
    change (SF2Prim (B2SF ?x)) with (B2Prim x). rewrite Prim2B_B2Prim. split; assumption.
  - apply add_is; [apply mul_is; assumption || (eapply Rle_trans; [exact P|apply bpow_le; lia])|exact Z|].
    apply T. apply rnd_bound; [lia|exact P].
Qed.
