(* The kernel's comparisons, with every rounding: "accept" implies (u + 1) W <= R and "reject" R <= u W. R = C E, for
   the amplitude C and the exact E = m 2^e f(x) 2^63, of which the kernel has a value F within 2^-40. *)
From Coq Require Import Reals ZArith Lra Lia Psatz.
From Flocq Require Import Core.
From Interval Require Import Tactic.
From Dpnoise Require Import Rounding.
Open Scope R_scope.

(* The window, 2^-28. *)
Notation eta2 := (1 / 268435456).

Section Trial.
Variables u W C : Z.
Variables E F : R.
Hypothesis Hu : (0 <= u)%Z.
Hypothesis HW : (1 <= W)%Z.
Hypothesis HC : (1 <= C)%Z.
Hypothesis HE : bpow radix2 (-960) <= E.
Hypothesis HF : Rabs (F / E - 1) <= 1 / 1099511627776.

Let low := rnd (F * rnd (IZR C * (1 - eta2))).
Let high := rnd (F * rnd (IZR C * (1 + eta2))).
Let left := rnd (rnd (IZR u) * IZR W).

Lemma E_pos : 0 < E. Proof. eapply Rlt_le_trans; [apply bpow_gt_0|exact HE]. Qed.
Lemma F_is : exists r, Rabs r <= 1 / 1099511627776 /\ F = E * (1 + r).
Proof. exists (F / E - 1). split; [exact HF|]. field. generalize E_pos; lra. Qed.

Lemma big x : 1/2 <= x -> bpow radix2 (-1000) <= Rabs x.
Proof.
  intros H. rewrite Rabs_pos_eq by lra. apply Rle_trans with (bpow radix2 (-1)); [apply bpow_le; lia|simpl; lra].
Qed.

Lemma side s : Rabs s <= eta2 -> exists r a b, Rabs r <= 1 / 1099511627776 /\ Rabs a <= u53 /\ Rabs b <= u53 /\
  rnd (F * rnd (IZR C * (1 + s))) = IZR C * E * ((1 + s) * (1 + r) * (1 + a) * (1 + b)).
Proof.
  intros S. apply Rabs_le_inv in S. destruct F_is as [r [Hr F']]. assert (H1 : 1 <= IZR C) by (apply IZR_le; lia).
  destruct (rounding (IZR C * (1 + s))) as [a [Ha A]]; [right; apply big; nra|].
  destruct (rounding (F * rnd (IZR C * (1 + s)))) as [b [Hb B]].
  - right. rewrite A, F'. apply Rabs_le_inv in Hr. apply Rabs_le_inv in Ha. generalize E_pos; intros P.
    assert (X : 1/4 <= (1 + r) * (IZR C * (1 + s) * (1 + a))).
    { assert (1/2 <= IZR C * (1 + s)) by nra. assert (1/2 * (1/2) <= (1 + r) * (IZR C * (1 + s) * (1 + a))); [|lra].
      apply Rmult_le_compat; nra. }
    rewrite Rabs_pos_eq.
    + apply Rle_trans with (bpow radix2 (-960) * bpow radix2 (-2)); [rewrite <- bpow_plus; apply bpow_le; lia|].
      rewrite Rmult_assoc. apply Rmult_le_compat; [apply bpow_ge_0|apply bpow_ge_0|exact HE|simpl; lra].
    + rewrite Rmult_assoc. apply Rmult_le_pos; lra.
  - exists r, a, b. repeat split; auto. rewrite B, A, F'. ring.
Qed.

Lemma left_is : exists a b, Rabs a <= u53 /\ Rabs b <= u53 /\ left = IZR u * IZR W * ((1 + a) * (1 + b)).
Proof.
  unfold left. assert (H1 : 1 <= IZR W) by (apply IZR_le; lia).
  destruct (Z.eq_dec u 0) as [->|N].
  - exists 0, 0. rewrite Rabs_R0. repeat split; try lra. unfold rnd.
    rewrite (round_0 _ _ ZnearestE), Rmult_0_l, (round_0 _ _ ZnearestE). ring.
  - assert (H2 : 1 <= IZR u) by (apply IZR_le; lia).
    destruct (rounding (IZR u)) as [a [Ha A]]; [right; apply big; lra|]. generalize (Rabs_le_inv _ _ Ha); intros Ha'.
    destruct (rounding (rnd (IZR u) * IZR W)) as [b [Hb B]]; [right; apply big; rewrite A|].
    { assert (1/2 <= IZR u * (1 + a)) by nra. nra. }
    exists a, b. repeat split; auto. rewrite B, A. ring.
Qed.

Theorem accept_is_right : rnd (left + IZR W) < low -> (IZR u + 1) * IZR W <= IZR C * E.
Proof.
  intros H. assert (H0 : 0 <= IZR u) by (apply IZR_le; lia). assert (H1 : 1 <= IZR W) by (apply IZR_le; lia).
  assert (H2 : 0 < IZR C * E) by (apply Rmult_lt_0_compat; [apply IZR_lt; lia|apply E_pos]).
  destruct left_is as [a [b [Ha [Hb L]]]]. rewrite L in H.
  apply Rabs_le_inv in Ha. apply Rabs_le_inv in Hb.
  assert (P : 0 <= IZR u * IZR W) by nra.
  assert (Q : 1 - 2 * u53 <= (1 + a) * (1 + b)) by nra.
  assert (S : (IZR u + 1) * IZR W * (1 - 2 * u53) <= IZR u * IZR W * ((1 + a) * (1 + b)) + IZR W) by nra.
  destruct (rounding (IZR u * IZR W * ((1 + a) * (1 + b)) + IZR W)) as [c [Hc R]]; [right; apply big; nra|].
  rewrite R in H. apply Rabs_le_inv in Hc.
  unfold low in H. replace (1 - eta2) with (1 + - eta2) in H by ring.
  destruct (side (- eta2)) as [r [d [e [Hr [Hd [He X]]]]]]; [rewrite Rabs_Ropp, Rabs_pos_eq; lra|].
  rewrite X in H. clear X R L.
  assert (K : (1 + - eta2) * (1 + r) * (1 + d) * (1 + e) <= (1 - 2 * u53) * (1 + c)).
  { apply Rabs_le_inv in Hr. apply Rabs_le_inv in Hd. apply Rabs_le_inv in He.
    apply Rminus_le. interval with (i_prec 100). }
  set (v := (IZR u + 1) * IZR W) in *. assert (0 <= v) by (unfold v; nra).
  assert (T : v * ((1 - 2 * u53) * (1 + c)) < IZR C * E * ((1 - 2 * u53) * (1 + c))).
  { eapply Rle_lt_trans; [|eapply Rlt_le_trans; [exact H|apply Rmult_le_compat_l; lra]].
    rewrite <- Rmult_assoc. apply Rmult_le_compat_r; lra. }
  apply Rmult_lt_reg_r in T; [lra|]. apply Rmult_lt_0_compat; lra.
Qed.

Theorem reject_is_right : high < left -> IZR C * E <= IZR u * IZR W.
Proof.
  intros H. assert (H0 : 0 <= IZR u) by (apply IZR_le; lia). assert (H1 : 1 <= IZR W) by (apply IZR_le; lia).
  assert (H2 : 0 < IZR C * E) by (apply Rmult_lt_0_compat; [apply IZR_lt; lia|apply E_pos]).
  destruct left_is as [a [b [Ha [Hb L]]]]. rewrite L in H.
  unfold high in H. destruct (side eta2) as [r [d [e [Hr [Hd [He X]]]]]]; [rewrite Rabs_pos_eq; lra|].
  rewrite X in H. apply Rabs_le_inv in Ha. apply Rabs_le_inv in Hb.
  assert (K : (1 + a) * (1 + b) <= (1 + eta2) * (1 + r) * (1 + d) * (1 + e)).
  { apply Rabs_le_inv in Hr. apply Rabs_le_inv in Hd. apply Rabs_le_inv in He.
    apply Rminus_le. interval with (i_prec 100). }
  assert (P : 0 <= IZR u * IZR W) by nra. assert (G : 0 < (1 + a) * (1 + b)) by nra.
  assert (T : IZR C * E * ((1 + a) * (1 + b)) < IZR u * IZR W * ((1 + a) * (1 + b))).
  { eapply Rle_lt_trans; [|exact H]. apply Rmult_le_compat_l; lra. }
  apply Rmult_lt_reg_r in T; [lra|exact G].
Qed.
End Trial.
