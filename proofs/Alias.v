(* Numbers from alias tables: each entry of a digit has exactly as many words as its table says, what they fall short of
   is made up exactly, and digits that have their probabilities make up the law. *)
From Coq Require Import Reals ZArith List Bool Lia Lra.
From Coquelicot Require Import Coquelicot.
From Dpnoise Require Import Model Words Sound Values.
Open Scope R_scope.

(* An entry and a sign have exactly their words: of 2^63, as many as lead to the entry. *)
Theorem entry_is_chosen l d last e (negative : bool) : sound_digit l d last = true ->
  mean 8 (fun head => mean 56 (fun fraction => one (entry_of d fraction head =? e)%Z * one (Bool.eqb (Z.testbit head 7)
    negative)))
  = IZR (entry_words d e) / IZR (2 ^ 62) * (1/2).
Proof.
  intros S. assert (Th : forall c, (0 <= c < 64)%Z -> (0 <= item (thresholds d) c < 2 ^ 56)%Z).
  { intros c C. unfold sound_digit in S. repeat rewrite andb_true_iff in S. destruct S as [[[[[T L] _] _] _] _].
    apply Nat.eqb_eq in L.
    generalize (item_in _ _ c T L C). rewrite andb_true_iff, Z.leb_le, Z.ltb_lt. exact (fun x => x). }
  change 8%nat with (6 + 2)%nat. rewrite mean_split.
  rewrite (mean_ext 2 _ (fun high => (IZR (entry_words d e) / IZR (2 ^ 62)) * one (Bool.eqb (Z.testbit high 1)
    negative))).
  - rewrite mean_scale. f_equal. cbn [mean]. destruct negative; simpl; lra.
  - intros high H. change (2^ 2) with 4%Z in H.
    rewrite (mean_ext 6 _ (fun column => IZR ((if column =? e then item (thresholds d) column else 0)
      + (if item (entries d) column =? e then 2 ^ 56 - item (thresholds d) column else 0))%Z * (/ IZR (2 ^ 56) * one
          (Bool.eqb (Z.testbit high 1) negative)))).
    + rewrite mean_scale_right, mean_integers. fold (entry_words d e).
      change (2 ^ 62)%Z with (2 ^ 56 * 2^ 6)%Z. rewrite mult_IZR. field. split; apply not_0_IZR; discriminate.
    + intros column C. change (2^ 6) with 64%Z in *.
      assert (Land : Z.land (high * 64 + column) (2 ^ 6 - 1) = column).
      { rewrite Z.sub_1_r, <- Z.ones_equiv, Z.land_ones by lia. change (2 ^ 6)%Z with 64%Z.
        rewrite Z.add_comm, Z.mod_add by lia. apply Z.mod_small, C. }
      assert (Bit : Z.testbit (high * 64 + column) 7 = Z.testbit high 1).
      { change 7%Z with (1 + 6)%Z. rewrite <- Z.div_pow2_bits by lia. change (2 ^ 6)%Z with 64%Z.
        rewrite Z.add_comm, Z.div_add, Z.div_small by lia. reflexivity. }
      unfold entry_of. cbv zeta. rewrite Land, Bit. generalize (Th column C). set (t := item (thresholds d) column).
      intros T.
      rewrite mean_scale_right. rewrite <- (Rmult_assoc _ (/ _)). f_equal.
      transitivity (mean 56 (fun f => one (item (entries d) column =? e)%Z
        + (one (column =? e)%Z - one (item (entries d) column =? e)%Z) * one (f <? t)%Z)).
      * apply mean_ext. intros f _. destruct (f <? t)%Z; unfold one; ring.
      * rewrite mean_plus, mean_const, mean_scale, mean_below by (change (2^ 56) with (2 ^ 56)%Z; lia).
        change (2^ 56) with (2 ^ 56)%Z.
        unfold one. destruct (column =? e)%Z, (item (entries d) column =? e)%Z; rewrite ?Z.add_0_r, ?Z.add_0_l,
          ?plus_IZR, ?minus_IZR;
          change (2 ^ 56)%Z with 72057594037927936%Z; field.
Qed.

(* The rest. Entry 63 stands for what the words of the others fall short of their probabilities: an entry is drawn
   uniformly and kept with the probability that it lacks, again and again, until one is. In all each has its
   probability. *)
Theorem rest_makes_up_for_the_words (lacking p A T A63 : R) : 0 < A63 <= 64 -> 0 < T -> lacking = p * T - A ->
  is_series (fun n => (1 - A63 / 64) ^ n * (1 / 64 * lacking)) (lacking / A63) /\ A / T + A63 / T * (lacking / A63) = p.
Proof.
  intros H P E. split; [|rewrite E; field; lra].
  replace (lacking / A63) with (1 / 64 * lacking / (1 - (1 - A63 / 64))) by (field; lra). apply first_success. lra.
Qed.

(* Digits make up the law. A magnitude is e1 + 62 e2 + 62 63 e3 with e1 from 1 to 62, e2 from 0 to 62; its sign is a
   fair bit. *)
Theorem signed_digits_make_the_law q e1 e2 e3 : 0 < q < 1 ->
  let Q := q ^ 62 in let R := Q ^ 63 in
  2 * (1 - q) * q ^ e1 / ((1 + q) * (1 - Q)) * ((1 - Q) * Q ^ e2 / (1 - R)) * ((1 - R) * R ^ e3) * (1/2)
  = (1 - q) / (1 + q) * q ^ (e1 + 62 * e2 + 62 * 63 * e3).
Proof.
  intros H Q R. assert (0 < Q < 1) by (unfold Q; split; [apply pow_lt; lra|apply pow_lt_1_compat; [lra|lia]]).
  assert (0 < R < 1) by (unfold R; split; [apply pow_lt; lra|apply pow_lt_1_compat; [lra|lia]]).
  rewrite !pow_add, !(pow_mult q). fold Q. fold R. field. repeat split; lra.
Qed.

Theorem digits_make_the_law q e1 e2 e3 : 0 < q < 1 ->
  let Q := q ^ 63 in let R := Q ^ 63 in
  (1 - q) * q ^ e1 / (1 - Q) * ((1 - Q) * Q ^ e2 / (1 - R)) * ((1 - R) * R ^ e3) = (1 - q) * q ^ (e1 + 63 * e2 + 63 *
    63 * e3).
Proof.
  intros H Q R. assert (0 < Q < 1) by (unfold Q; split; [apply pow_lt; lra|apply pow_lt_1_compat; [lra|lia]]).
  assert (0 < R < 1) by (unfold R; split; [apply pow_lt; lra|apply pow_lt_1_compat; [lra|lia]]).
  rewrite !pow_add, !(pow_mult q). fold Q. fold R. field. repeat split; lra.
Qed.
