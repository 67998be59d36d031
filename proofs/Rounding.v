(* Rounding to doubles, as real numbers. *)
From Coq Require Import Reals ZArith Lia Lra.
From Flocq Require Import Core Relative.
Open Scope R_scope.

(* To the nearest double, ties to even; numbers too large for doubles do not occur. *)
Definition rnd := round radix2 (FLT_exp (-1074) 53) ZnearestE.
Notation double := (generic_format radix2 (FLT_exp (-1074) 53)).
Notation u53 := (1 / 9007199254740992).

Lemma rounding x : x = 0 \/ bpow radix2 (-1000) <= Rabs x -> exists e, Rabs e <= u53 /\ rnd x = x * (1 + e).
Proof.
  intros [->|H].
  - exists 0. split; [rewrite Rabs_R0; lra|]. unfold rnd. rewrite round_0; [ring|apply valid_rnd_N].
  - destruct (relative_error_N_FLT_ex radix2 (-1074) 53 ltac:(reflexivity) (fun z => negb (Z.even z)) x) as [e [E X]].
    + eapply Rle_trans; [|exact H]. apply bpow_le. lia.
    + exists e. split; [|exact X]. eapply Rle_trans; [exact E|]. simpl. lra.
Qed.

Lemma rnd_double x : double x -> rnd x = x.
Proof. apply round_generic. apply valid_rnd_N. Qed.

Lemma double_rnd x : double (rnd x).
Proof. apply generic_format_round; [apply FLT_exp_valid; reflexivity|apply valid_rnd_N]. Qed.

Lemma whole_double k : (Z.abs k <= 2 ^ 53)%Z -> double (IZR k).
Proof.
  intros H. destruct (Z.eq_dec (Z.abs k) (2 ^ 53)) as [E|E].
  - apply generic_format_abs_inv. rewrite <- abs_IZR, E. change (IZR (2 ^ 53)) with (bpow radix2 53).
    apply generic_format_FLT_bpow; [reflexivity|lia].
  - apply generic_format_FLT. exists (Float radix2 k 0); simpl; [unfold F2R; simpl; ring|lia|lia].
Qed.

Lemma rnd_bound x e : (-1000 <= e <= 1020)%Z -> Rabs x <= bpow radix2 e -> Rabs (rnd x) <= bpow radix2 e.
Proof.
  intros He H. apply Rabs_le_inv in H. apply Rabs_le. unfold rnd.
  assert (F : double (bpow radix2 e)) by (apply generic_format_FLT_bpow; [reflexivity|lia]).
  split.
  - apply round_ge_generic; [apply FLT_exp_valid; reflexivity|apply valid_rnd_N|apply generic_format_opp; exact F|lra].
  - apply round_le_generic; [apply FLT_exp_valid; reflexivity|apply valid_rnd_N|exact F|lra].
Qed.

Lemma rnd_monotone x y : x <= y -> rnd x <= rnd y.
Proof. apply round_le; [apply FLT_exp_valid; reflexivity|apply valid_rnd_N]. Qed.

Lemma rnd_nonnegative x : 0 <= x -> 0 <= rnd x.
Proof. intros H. rewrite <- (rnd_double 0) by apply generic_format_0. apply rnd_monotone, H. Qed.
