(* The privacy of a choice by scores: the exponential mechanism, with its bounded range, and permute-and-flip. *)
From Coquelicot Require Import Coquelicot.
From Coq Require Import Reals ZArith List Lia Lra.
From Flocq Require Import Core.
From Dpnoise Require Import Values Grid Choices.
Import ListNotations.
Open Scope R_scope.

(* All scores move by amounts of one interval, of length B. *)
Definition move (c B : R) : list R -> list R -> Prop := Forall2 (fun r r' => c <= r' - r <= c + B).

Lemma map_of_both {A B C D} (P : A -> B -> Prop) (Q : C -> D -> Prop) f g l m : (forall a b, P a b -> Q (f a) (g b)) ->
  Forall2 P l m -> Forall2 Q (map f l) (map g m).
Proof. intros H. induction 1; simpl; constructor; auto. Qed.

Lemma exp_le_inv x y : exp x <= exp y -> x <= y.
Proof. intros H. apply Rnot_lt_le. intros L. apply exp_increasing in L. lra. Qed.

Lemma all_of_both {A B} (P : A -> Prop) (Q : B -> Prop) (S : A -> B -> Prop) l m : Forall P l -> Forall Q m ->
  Forall2 S l m -> Forall2 (fun a b => P a /\ Q b /\ S a b) l m.
Proof. intros F G H. induction H; inversion_clear F; inversion_clear G; constructor; auto. Qed.

Lemma second_of_both {A B} (P : A -> B -> Prop) (Q : B -> B -> Prop) l m : (forall a b, P a b -> Q b b) ->
  Forall2 P l m -> Forall2 Q m m.
Proof. intros H. induction 1; simpl; constructor; eauto. Qed.

(* A ratio of at most e^(B / b), and bounded range: the logarithms of the ratios lie in one interval of that length. *)
Theorem softmax_has_bounded_range b c B scores scores' : 0 < b -> scores <> [] -> move c B scores scores' ->
  exists l, - (B / b) <= l <= 0 /\ forall i, (i < length scores)%nat ->
    exp l * softmax b scores i <= softmax b scores' i <= exp (l + B / b) * softmax b scores i.
Proof.
  intros P N M. assert (I : 0 < / b) by (apply Rinv_0_lt_compat, P).
  assert (F : Forall2 (fun u u' => exp (c / b) * u <= u' <= exp (c / b + B / b) * u)
    (map (fun r => exp (r / b)) scores) (map (fun r => exp (r / b)) scores')).
  { eapply map_of_both; [|exact M]. intros r r' H. cbv beta in *. rewrite <- !exp_plus. unfold Rdiv.
    split; apply Raux.exp_le; rewrite <- ?Rmult_plus_distr_r; apply Rmult_le_compat_r; lra. }
  assert (N' : scores' <> []) by (intros ->; apply N; inversion M; reflexivity).
  assert (T := exponentials_are_positive b scores N). assert (T' := exponentials_are_positive b scores' N').
  assert (S : exp (c / b) * total (map (fun r => exp (r / b)) scores) <= total (map (fun r => exp (r / b)) scores')
    <= exp (c / b + B / b) * total (map (fun r => exp (r / b)) scores)).
  { clear - F. unfold total. induction F; simpl; lra. }
  unfold softmax, share. rewrite <- (map_length (fun r => exp (r / b))).
  set (u := map _ scores) in *. set (u' := map _ scores') in *. set (t := total u) in *. set (t' := total u') in *.
  assert (Q : 0 < t / t') by (apply Rdiv_lt_0_compat; assumption).
  exists (c / b + ln (t / t')). split.
  - split; apply exp_le_inv; rewrite exp_plus, exp_ln by exact Q; apply Rmult_le_reg_r with t'; try exact T';
      unfold Rdiv; rewrite !Rmult_assoc, Rinv_l, Rmult_1_r by lra; [|rewrite exp_0, Rmult_1_l; apply S].
    apply Rmult_le_reg_l with (exp (B / b)); [apply exp_pos|]. rewrite <- !Rmult_assoc, <- !exp_plus.
    rewrite Rplus_opp_r, exp_0, Rmult_1_l, Rplus_comm. apply S.
  - intros i L. generalize (nth_of_both _ u u' 0 0 F i L). cbv beta. intros U.
    rewrite Rplus_assoc, (Rplus_comm (ln _)), <- Rplus_assoc, !(exp_plus _ (ln _)), exp_ln by exact Q.
    split; apply Rmult_le_reg_r with t'; try exact T'.
    + replace (nth i u' 0 / t' * t') with (nth i u' 0) by (field; lra).
      replace (exp (c / b) * (t / t') * (nth i u 0 / t) * t') with (exp (c / b) * nth i u 0) by (field; lra). apply U.
    + replace (nth i u' 0 / t' * t') with (nth i u' 0) by (field; lra).
      replace (exp (c / b + B / b) * (t / t') * (nth i u 0 / t) * t') with (exp (c / b + B / b) * nth i u 0)
        by (field; lra). apply U.
Qed.

(* Bounded range gives (epsilon^2 / 8)-zCDP (Cesar and Rogers 2021): the logarithm of the mean of e^(a loss) is 0 at
   a = 0 and 1. Its second derivative is a variance of numbers in an interval of length epsilon, and so at most
   epsilon^2 / 4. *)
Definition moment (losses : list (R * R)) (k : nat) (a : R) : R :=
  total (map (fun '(p, loss) => p * loss ^ k * exp (a * loss)) losses).

Lemma moment_derives losses k a : is_derive (moment losses k) a (moment losses (S k) a).
Proof.
  unfold moment, total. induction losses as [|[p loss] losses IH]; simpl.
  - apply (is_derive_const (K := R_AbsRing) (V := R_NormedModule)).
  - apply (is_derive_plus (K := R_AbsRing) (V := R_NormedModule)); [|exact IH]. auto_derive; [exact I|ring].
Qed.

Lemma variance_is_small losses l e a : Forall (fun '(p, loss) => 0 <= p /\ l <= loss <= l + e) losses ->
  moment losses 2 a * moment losses 0 a - moment losses 1 a * moment losses 1 a
    <= e * e / 4 * (moment losses 0 a * moment losses 0 a) /\ 0 <= moment losses 0 a.
Proof.
  intros H. assert (0 <= moment losses 0 a /\
    moment losses 2 a <= (2 * l + e) * moment losses 1 a - l * (l + e) * moment losses 0 a) as [P Q].
  { unfold moment, total. induction H as [|[p loss] losses [P [L U]] _ IH]; simpl in *; [split; lra|].
    assert (0 <= p * exp (a * loss)) by (apply Rmult_le_pos; [exact P|apply Rlt_le, exp_pos]).
    assert (0 <= p * exp (a * loss) * ((loss - l) * (l + e - loss))) by
      (apply Rmult_le_pos; [assumption|apply Rmult_le_pos; lra]).
    split; [lra|]. lra. }
  split; [|exact P]. set (m0 := moment _ 0 _) in *. set (m1 := moment _ 1 _) in *. set (m2 := moment _ 2 _) in *.
  apply Rmult_le_compat_r with (r := m0) in Q; [|exact P].
  assert (0 <= (m1 - (l + e / 2) * m0) * (m1 - (l + e / 2) * m0)) by apply Rle_0_sqr. lra.
Qed.

Lemma mean_value f df a b : a <= b -> (forall x, a <= x <= b -> is_derive f x (df x)) ->
  exists x, a <= x <= b /\ f b - f a = df x * (b - a).
Proof.
  intros L D. destruct (MVT_gen f a b df) as [x [X E]]; rewrite ?Rmin_left, ?Rmax_right in * by exact L.
  - intros y Y. apply D. lra.
  - intros y Y. apply derivable_continuous_pt. exists (df y). apply is_derive_Reals, D, Y.
  - exists x. split; assumption.
Qed.

Lemma cumulants_are_small losses l e a : Forall (fun '(p, loss) => 0 < p /\ l <= loss <= l + e) losses ->
  moment losses 0 0 = 1 -> moment losses 0 1 = 1 -> 1 <= a -> moment losses 0 a <= exp (a * (a - 1) * (e * e / 8)).
Proof.
  intros H H0 H1 A.
  assert (P : forall x, 0 < moment losses 0 x).
  { intros x. destruct losses as [|[p loss] losses]; [unfold moment in H0; simpl in H0; lra|].
    inversion_clear H as [|? ? P F]. unfold moment. cbn [map total fold_right pow].
    apply Rplus_lt_le_0_compat; [rewrite Rmult_1_r; apply Rmult_lt_0_compat; [apply P|apply exp_pos]|].
    apply total_is_positive, Forall_map. eapply Forall_impl; [|exact F]. intros [q k] [Q _].
    generalize (exp_pos (x * k)). simpl. nra. }
  set (h := fun x => ln (moment losses 0 x) - e * e / 8 * (x * x - x)).
  set (h' := fun x => moment losses 1 x / moment losses 0 x - e * e / 8 * (2 * x - 1)).
  set (h'' := fun x => (moment losses 2 x * moment losses 0 x - moment losses 1 x * moment losses 1 x)
    / (moment losses 0 x * moment losses 0 x) - e * e / 4).
  assert (D : forall x : R, is_derive h x (h' x)).
  { intros x. unfold h, h'. assert (D0 := moment_derives losses 0 x). auto_derive.
    - split; [exists (moment losses 1 x); exact D0|split; [apply P|exact I]].
    - rewrite (is_derive_unique (fun y : R => moment losses 0 y) x _ D0). field. generalize (P x). lra. }
  assert (D' : forall x : R, is_derive h' x (h'' x)).
  { intros x. unfold h', h''. assert (D0 := moment_derives losses 0 x). assert (D1 := moment_derives losses 1 x).
    generalize (P x). intros Px. auto_derive.
    - repeat split; [exists (moment losses 2 x); exact D1|exists (moment losses 1 x); exact D0|lra].
    - rewrite (is_derive_unique (fun y : R => moment losses 0 y) x _ D0),
        (is_derive_unique (fun y : R => moment losses 1 y) x _ D1). field. lra. }
  assert (N : forall x, h'' x <= 0).
  { intros x. unfold h''. assert (0 < moment losses 0 x * moment losses 0 x) by (apply Rmult_lt_0_compat; apply P).
    destruct (variance_is_small losses l e x) as [V _].
    { eapply Forall_impl; [|exact H]. intros [p loss] [? ?]. lra. }
    apply Rmult_le_compat_r with (r := / (moment losses 0 x * moment losses 0 x)) in V;
      [|apply Rlt_le, Rinv_0_lt_compat; assumption].
    rewrite (Rmult_assoc (e * e / 4)), Rinv_r in V by lra. unfold Rdiv at 1. lra. }
  destruct (mean_value h h' 0 1) as [x [X E]]; [lra|intros; apply D|].
  destruct (mean_value h h' 1 a) as [y [Y G]]; [lra|intros; apply D|].
  destruct (mean_value h' h'' x y) as [z [Z K]]; [lra|intros; apply D'|].
  assert (h 0 = 0 /\ h 1 = 0) as [Z0 Z1] by (unfold h; rewrite H0, H1, ln_1; split; ring).
  assert (Q : h a <= 0).
  { rewrite Z0 in E. rewrite Z1 in E, G. specialize (N z). clear - E G K N X Y A. clearbody h h' h''.
    assert (h' y <= 0) by nra. nra. }
  rewrite <- (exp_ln (moment losses 0 a)) by apply P. apply Raux.exp_le. unfold h in *. lra.
Qed.

(* The Renyi divergence of order a is at most a epsilon^2 / 8, here without logarithm and factor 1 / (a - 1). *)
Theorem bounded_range_is_concentrated count law law' l epsilon a :
  is_distribution count law -> is_distribution count law' ->
  (forall i, (i < count)%nat -> 0 < law i /\ exp l * law i <= law' i <= exp (l + epsilon) * law i) -> 1 <= a ->
  total (map (fun i => law i * Rpower (law' i / law i) a) (seq 0 count)) <= exp (a * (a - 1) * (epsilon ^ 2 / 8)).
Proof.
  intros [_ T] [_ T'] H A. set (losses := map (fun i => (law i, ln (law' i / law i))) (seq 0 count)).
  assert (M : forall x, moment losses 0 x = total (map (fun i => law i * Rpower (law' i / law i) x) (seq 0 count))).
  { intros x. unfold moment, losses. rewrite map_map. f_equal. apply map_ext. intros i. simpl. unfold Rpower. ring. }
  assert (Q : forall i, In i (seq 0 count) -> 0 < law i /\ exp l <= law' i / law i <= exp (l + epsilon)).
  { intros i I. apply in_seq in I. destruct (H i ltac:(lia)) as [P [L U]]. split; [exact P|].
    split; apply Rmult_le_reg_r with (law i); try exact P; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra. }
  rewrite <- M. replace (epsilon ^ 2) with (epsilon * epsilon) by ring.
  apply cumulants_are_small with l;
    [|rewrite M; etransitivity; [|exact T]|rewrite M; etransitivity; [|exact T']|exact A].
  - apply Forall_map, Forall_forall. intros i I. destruct (Q i I) as [P [L U]]. split; [exact P|].
    generalize (exp_pos l). intros. split; apply exp_le_inv; rewrite exp_ln; lra.
  - f_equal. apply map_ext_in. intros i I. destruct (Q i I) as [P [L U]]. generalize (exp_pos l). intros.
    rewrite Rpower_O; lra.
  - f_equal. apply map_ext_in. intros i I. destruct (Q i I) as [P [L U]]. generalize (exp_pos l). intros.
    rewrite Rpower_1 by lra. field. lra.
Qed.

(* Permute-and-flip as an integral: 1 / h is the mean of (1 - s)^(h - 1) for s between 0 and 1, of which the mean over
   all coins is the candidate's weight times a product of 1 - s w over the others. *)
Fixpoint no_other (coins : list R) (i : nat) (s : R) : R :=
  match coins, i with
  | [], _ => 1
  | _ :: coins, O => no_other coins (length coins) s
  | w :: coins, S i => (1 - s * w) * no_other coins i s
  end.

Lemma mean_of_a_power n : is_RInt (fun s => (1 - s) ^ n) 0 1 (/ INR (S n)).
Proof.
  assert (N : INR (S n) <> 0) by (apply not_0_INR; lia).
  replace (/ INR (S n)) with (minus (- (1 - 1) ^ S n / INR (S n)) (- (1 - 0) ^ S n / INR (S n))).
  - apply (is_RInt_derive (fun s => - (1 - s) ^ S n / INR (S n))).
    + intros s _. auto_derive; [exact I|]. change (match n with O => 1 | S _ => INR n + 1 end) with (INR (S n)).
      change (1 + - s) with (1 - s). field. exact N.
    + intros s _. apply (ex_derive_continuous (fun s => (1 - s) ^ n)). auto_derive. exact I.
  - unfold minus, plus, opp. cbn -[INR]. rewrite Rminus_0_r, pow1, Rminus_diag_eq by reflexivity. field. exact N.
Qed.

Lemma flips_of_integrals ws : forall (f : list bool -> R) (g : R -> list bool -> R),
  (forall heads, is_RInt (fun s => g s heads) 0 1 (f heads)) -> is_RInt (fun s => flips ws (g s)) 0 1 (flips ws f).
Proof.
  induction ws as [|w ws IH]; intros f g H; simpl; [apply H|].
  apply (is_RInt_plus (V := R_NormedModule)); apply (is_RInt_scal (V := R_NormedModule));
    [apply (IH _ (fun s heads => g s (true :: heads)))|apply (IH _ (fun s heads => g s (false :: heads)))];
    intros; apply H.
Qed.

Lemma flips_of_powers ws s : flips ws (fun heads => (1 - s) ^ heads_of heads) = no_other ws (length ws) s.
Proof.
  induction ws as [|w ws IH]; [reflexivity|]. cbn [flips length no_other]. rewrite <- IH. unfold heads_of.
  cbn [filter length pow]. rewrite flips_scale. ring.
Qed.

Definition turn (i : nat) (s : R) (heads : list bool) : R :=
  if nth i heads false then (1 - s) ^ (heads_of heads - 1) else 0.

Lemma flips_of_turns s ws : forall i, flips ws (turn i s) = nth i ws 0 * no_other ws i s.
Proof.
  induction ws as [|w ws IH]; intros i; [destruct i; unfold turn; simpl; ring|].
  cbn [flips]. destruct i as [|i]; cbn [nth no_other].
  - rewrite <- flips_of_powers. replace (flips ws (fun heads => turn 0%nat s (false :: heads))) with 0.
    + rewrite Rmult_0_r, Rplus_0_r. f_equal. apply flips_ext. intros heads _.
      unfold turn, heads_of. cbn [nth filter length]. rewrite Nat.sub_1_r. reflexivity.
    + rewrite <- (flips_const ws 0). reflexivity.
  - rewrite (flips_ext ws _ (fun heads => (1 - s) * turn i s heads)).
    + rewrite flips_scale. change (fun heads => turn (S i) s (false :: heads)) with (turn i s). rewrite IH. ring.
    + intros heads _. unfold turn. cbn [nth]. destruct (nth i heads false) eqn:E; [|ring].
      apply head_is_counted in E. rewrite tech_pow_Rmult. f_equal. unfold heads_of in *. simpl. lia.
Qed.

Lemma uniform_of_heads_is_integral ws i :
  is_RInt (fun s => nth i ws 0 * no_other ws i s) 0 1 (uniform_of_heads ws i).
Proof.
  apply is_RInt_ext with (fun s => flips ws (turn i s)); [intros; apply flips_of_turns|].
  apply flips_of_integrals. intros heads. unfold turn. destruct (nth i heads false) eqn:E.
  - replace (/ INR (heads_of heads)) with (/ INR (S (heads_of heads - 1))); [apply mean_of_a_power|].
    apply head_is_counted in E. do 2 f_equal. lia.
  - assert (Z := is_RInt_const (V := R_NormedModule) 0 1 0). change (scal (1 - 0) 0) with ((1 - 0) * 0) in Z.
    rewrite Rmult_0_r in Z. exact Z.
Qed.

(* Neither it nor the factors fall where s is made smaller by a factor k and weights grow by 1 / k at most. *)
Lemma no_other_falls k ws ws' s : 0 <= s <= 1 -> 0 <= k -> Forall2 (fun w w' => 0 <= w <= 1 /\ k * w' <= w) ws ws' ->
  forall i, 0 <= no_other ws i s <= no_other ws' i (k * s).
Proof.
  intros S K. induction 1 as [|w w' ws ws' [W L] F IH]; intros i; simpl; [lra|].
  destruct i as [|i]; [rewrite <- (length_of_both _ _ _ F); apply IH|]. destruct (IH i) as [P Q].
  assert (0 <= 1 - s * w <= 1 - k * s * w') by (split; nra).
  split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra].
Qed.

Lemma uniform_of_heads_falls e ws ws' i : 1 <= e -> (i < length ws)%nat ->
  Forall2 (fun w w' => 0 < w <= 1 /\ 0 < w' <= 1 /\ nth i ws 0 * w' <= w * (e * nth i ws' 0)) ws ws' ->
  nth i ws 0 <= e * nth i ws' 0 -> uniform_of_heads ws i <= e * uniform_of_heads ws' i.
Proof.
  intros E L F U. destruct (nth_of_both _ ws ws' 0 0 F i L) as [W [W' _]].
  set (w := nth i ws 0) in *. set (w' := nth i ws' 0) in *. assert (EW : 0 < e * w') by (apply Rmult_lt_0_compat; lra).
  set (k := w / (e * w')). assert (K : 0 <= k <= 1).
  { unfold k. split; [apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat, EW]|].
    apply Rmult_le_reg_r with (e * w'); [exact EW|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  assert (I' := uniform_of_heads_is_integral ws' i). fold w' in I'. set (f := fun s => w' * no_other ws' i s) in I'.
  assert (X : ex_RInt f 0 1) by (eexists; exact I').
  assert (X1 : ex_RInt f 0 k) by (apply (ex_RInt_Chasles_1 (V := R_CompleteNormedModule) f 0 k 1 K X)).
  assert (X2 : ex_RInt f k 1) by (apply (ex_RInt_Chasles_2 (V := R_CompleteNormedModule) f 0 k 1 K X)).
  assert (P : 0 <= RInt f k 1).
  { apply RInt_ge_0; [lra|exact X2|]. intros s S. unfold f. apply Rmult_le_pos; [lra|].
    refine (proj1 (no_other_falls 1 ws' ws' s _ _ _ i)); [lra|lra|].
    eapply second_of_both; [|exact F]. intros v v' V. cbv beta in V. lra. }
  assert (A : uniform_of_heads ws' i = RInt f 0 k + RInt f k 1).
  { rewrite <- (is_RInt_unique _ _ _ _ I'). symmetry. apply (RInt_Chasles f 0 k 1 X1 X2). }
  assert (C : is_RInt (fun s => e * (k * f (k * s + 0))) 0 1 (e * RInt f 0 k)).
  { apply (is_RInt_scal (V := R_NormedModule)), (is_RInt_comp_lin (V := R_NormedModule) f k 0).
    rewrite Rmult_0_r, Rmult_1_r, !Rplus_0_r. apply (RInt_correct f), X1. }
  apply Rle_trans with (e * RInt f 0 k); [|rewrite A; apply Rmult_le_compat_l; lra].
  apply (is_RInt_le _ _ 0 1 _ _ ltac:(lra) (uniform_of_heads_is_integral ws i) C). intros s S. fold w. unfold f.
  rewrite Rplus_0_r. replace (e * (k * (w' * no_other ws' i (k * s)))) with (w * no_other ws' i (k * s))
    by (unfold k; field; lra).
  apply Rmult_le_compat_l; [lra|]. refine (proj2 (no_other_falls k ws ws' s _ _ _ i)); [lra|lra|].
  eapply (map_of_both _ _ id id) in F; [rewrite !map_id in F; exact F|]. unfold id. intros v v' [V [V' H]].
  split; [lra|]. unfold k. apply Rmult_le_reg_r with (e * w'); [exact EW|].
  replace (w / (e * w') * v' * (e * w')) with (w * v') by (field; lra). exact H.
Qed.

Lemma best_moves c B scores scores' : move c B scores scores' -> scores <> [] ->
  c <= best scores' - best scores <= c + B.
Proof.
  assert (M : forall d d' l l', c <= d' - d <= c + B -> move c B l l' ->
    c <= fold_right Rmax d' l' - fold_right Rmax d l <= c + B).
  { intros d d' l l' D. induction 1 as [|r r' l l' H _ IH]; simpl; [exact D|].
    revert IH. generalize (fold_right Rmax d l) (fold_right Rmax d' l'). intros m m' IH.
    unfold Rmax. destruct (Rle_dec r' m'), (Rle_dec r m); lra. }
  intros H N. unfold best. apply M; [|exact H]. destruct H; [congruence|exact H].
Qed.

Lemma quotient_of_exponentials b x y B : 0 < b -> y <= B + x -> exp (- (x / b)) <= exp (B / b) * exp (- (y / b)).
Proof.
  intros P H. rewrite <- exp_plus. apply Raux.exp_le. apply Rmult_le_reg_r with b; [exact P|].
  replace (- (x / b) * b) with (- x) by (field; lra). replace ((B / b + - (y / b)) * b) with (B - y) by (field; lra).
  lra.
Qed.

(* A ratio of at most e^(B / b). *)
Theorem permute_and_flip_has_small_ratios b c B scores scores' i : 0 < b -> 0 <= B -> move c B scores scores' ->
  (i < length scores)%nat ->
  permute_and_flip b scores i <= exp (B / b) * permute_and_flip b scores' i.
Proof.
  intros P PB M L. assert (L' : (i < length scores')%nat) by (rewrite <- (length_of_both _ _ _ M); exact L).
  destruct (best_moves _ _ _ _ M ltac:(intros ->; simpl in L; lia)) as [L1 U1].
  assert (R := nth_of_both _ _ _ 0 0 M i L). cbv beta in R.
  assert (W : forall l, (i < length l)%nat -> nth i (coins b l) 0 = exp (- ((best l - nth i l 0) / b))).
  { intros l J. apply (nth_of_map (fun r => exp (- ((best l - r) / b))) l i 0 0 J). }
  apply uniform_of_heads_falls.
  - rewrite <- exp_0. apply Raux.exp_le, Rmult_le_pos; [exact PB|apply Rlt_le, Rinv_0_lt_compat, P].
  - unfold coins. rewrite map_length. exact L.
  - rewrite !W by assumption. apply all_of_both; [apply coins_are_probabilities, P..|].
    eapply map_of_both; [|exact M]. intros r r' H. cbv beta in *. rewrite <- !exp_plus.
    rewrite (Rplus_comm (B / b)), <- Rplus_assoc, (Rplus_comm _ (B / b)), (exp_plus (B / b)).
    replace (- ((best scores - nth i scores 0) / b) + - ((best scores' - r') / b))
      with (- ((best scores - nth i scores 0 + best scores' - r') / b)) by (field; lra).
    replace (- ((best scores - r) / b) + - ((best scores' - nth i scores' 0) / b))
      with (- ((best scores - r + best scores' - nth i scores' 0) / b)) by (field; lra).
    apply quotient_of_exponentials; lra.
  - rewrite !W by assumption. apply quotient_of_exponentials; lra.
Qed.

(* Proposals by larger weights, each accepted with the quotient of both, until one is: the law of the smaller weights.
   So a run may be proposed as one candidate, and candidates whose scores are not looked at by higher ones. *)
Definition accepted (proposed weights : list R) (i : nat) : R :=
  share proposed i * (nth i weights 0 / nth i proposed 0).
Definition missed (proposed weights : list R) : R :=
  1 - total (map (accepted proposed weights) (seq 0 (length weights))).

Theorem proposals_have_the_law proposed weights i : Forall2 (fun v w => 0 <= w <= v) proposed weights ->
  0 < total weights -> 0 <= missed proposed weights < 1 /\
  is_series (fun n => missed proposed weights ^ n * accepted proposed weights i) (share weights i).
Proof.
  intros F W. assert (V : total weights <= total proposed).
  { clear - F. unfold total. induction F; simpl; lra. }
  assert (A : forall j, accepted proposed weights j = nth j weights 0 * / total proposed).
  { intros j. unfold accepted, share. assert (H : nth j proposed 0 = 0 -> nth j weights 0 = 0).
    { destruct (Nat.lt_ge_cases j (length proposed)) as [J|J].
      - generalize (nth_of_both _ _ _ 0 0 F j J). cbv beta. lra.
      - intros _. apply nth_overflow. rewrite <- (length_of_both _ _ _ F). exact J. }
    destruct (Req_dec (nth j proposed 0) 0) as [Q|Q]; [rewrite (H Q); unfold Rdiv; ring|field; lra]. }
  assert (M : missed proposed weights = 1 - total weights / total proposed).
  { unfold missed. rewrite (map_ext _ _ A), total_scales, all_in_order. reflexivity. }
  assert (P : 0 < total weights / total proposed <= 1).
  { split; [apply Rdiv_lt_0_compat; lra|]. apply Rmult_le_reg_r with (total proposed); [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  split; [rewrite M; lra|].
  replace (share weights i) with (accepted proposed weights i / (1 - missed proposed weights)).
  - apply first_success. rewrite M. lra.
  - rewrite A, M. unfold share. field. lra.
Qed.

(* The mechanisms: scores are rounded to a grid of step g, and those that are far below the best are raised. *)
Definition neighbours (monotonic : bool) (sensitivity : R) (scores scores' : list R) : Prop :=
  if monotonic
  then Forall2 (fun s s' => 0 <= s' - s <= sensitivity) scores scores'
    \/ Forall2 (fun s s' => 0 <= s - s' <= sensitivity) scores scores'
  else Forall2 (fun s s' => Rabs (s' - s) <= sensitivity) scores scores'.
Definition scale (monotonic : bool) (g sensitivity epsilon : R) : R :=
  (if monotonic then 1 else 2) * IZR (Zceil (sensitivity / g)) / epsilon.
Definition at_least (lowest : R) : list R -> list R := map (Rmax lowest).
Definition steps (g limit : R) (scores : list R) : list R :=
  let rounded := map (fun s => IZR (nearest g s)) scores in at_least (best rounded - limit) rounded.

Lemma raised_move c B k k' scores scores' : c <= k' - k <= c + B -> move c B scores scores' ->
  move c B (at_least k scores) (at_least k' scores').
Proof.
  intros K. apply map_of_both. intros r r' H. unfold Rmax. destruct (Rle_dec k r), (Rle_dec k' r'); lra.
Qed.

Lemma steps_move monotonic g limit sensitivity scores scores' : 0 < g -> 0 < sensitivity -> scores <> [] ->
  neighbours monotonic sensitivity scores scores' ->
  let B := (if monotonic then 1 else 2) * IZR (Zceil (sensitivity / g)) in
  0 < B /\ exists c, move c B (steps g limit scores) (steps g limit scores').
Proof.
  intros G S N H B. set (D := IZR (Zceil (sensitivity / g))) in *.
  assert (P : 0 < D).
  { eapply Rlt_le_trans; [|apply Zceil_ub]. apply Rdiv_lt_0_compat; assumption. }
  assert (One : forall s s', Rabs (s' - s) <= sensitivity -> - D <= IZR (nearest g s') - IZR (nearest g s) <= D).
  { intros s s' L. apply (distance_of_one g G) in L. unfold D. rewrite <- minus_IZR, <- opp_IZR.
    split; apply IZR_le; lia. }
  assert (Up : forall s s', 0 <= s' - s <= sensitivity -> 0 <= IZR (nearest g s') - IZR (nearest g s) <= D).
  { intros s s' L. split; [|apply One; rewrite Rabs_pos_eq; lra]. rewrite <- minus_IZR. apply IZR_le.
    generalize (nearest_moves g G s s' 0 ltac:(lra)). lia. }
  assert (exists c, move c B (map (fun s => IZR (nearest g s)) scores) (map (fun s => IZR (nearest g s)) scores'))
    as [c M].
  { unfold B. destruct monotonic; [destruct H as [H|H]; [exists 0|exists (- D)]|exists (- D)];
      (eapply map_of_both; [|exact H]); intros s s' L; cbv beta in *;
      [generalize (Up _ _ L)|generalize (Up _ _ L)|generalize (One _ _ L)]; lra. }
  split; [unfold B; destruct monotonic; lra|]. exists c. unfold steps.
  apply raised_move; [|exact M]. generalize (best_moves _ _ _ _ M). intros Q.
  assert (map (fun s => IZR (nearest g s)) scores <> []) by (intros E; apply map_eq_nil in E; contradiction).
  specialize (Q ltac:(assumption)). lra.
Qed.

Section Mechanisms.
Variables (monotonic : bool) (g limit sensitivity epsilon : R) (scores scores' : list R).
Hypotheses (G : 0 < g) (S : 0 < sensitivity) (E : 0 < epsilon) (N : scores <> []).
Hypothesis near : neighbours monotonic sensitivity scores scores'.
Let b := scale monotonic g sensitivity epsilon.

Lemma scale_is_right : let B := (if monotonic then 1 else 2) * IZR (Zceil (sensitivity / g)) in
  0 < b /\ 0 <= B /\ B / b = epsilon /\ (exists c, move c B (steps g limit scores) (steps g limit scores'))
  /\ length (steps g limit scores) = length scores /\ steps g limit scores <> [].
Proof.
  intros B. destruct (steps_move monotonic g limit sensitivity scores scores' G S N near) as [P M]. fold B in P, M.
  assert (b = B / epsilon) as -> by reflexivity. split; [apply Rdiv_lt_0_compat; assumption|].
  split; [lra|]. split; [field; lra|]. split; [exact M|].
  assert (L : length (steps g limit scores) = length scores).
  { unfold steps, at_least. rewrite !map_length. reflexivity. }
  split; [exact L|]. intros Z. rewrite Z in L. destruct scores; [contradiction|discriminate].
Qed.

(* The exponential mechanism: the loss of each candidate is within epsilon of 0, and the losses of all candidates lie in
   one interval of length epsilon. *)
Theorem exponential_mechanism_is_private : let law scores := softmax b (steps g limit scores) in
  exists l, - epsilon <= l <= 0 /\ forall i, (i < length scores)%nat ->
    exp l * law scores i <= law scores' i <= exp (l + epsilon) * law scores i.
Proof.
  destruct scale_is_right as [P [_ [Q [[c M] [L N']]]]]. rewrite <- Q, <- L.
  apply softmax_has_bounded_range with c; assumption.
Qed.

(* And it is (epsilon^2 / 8)-zCDP. *)
Theorem exponential_mechanism_is_concentrated a : 1 <= a -> let law scores := softmax b (steps g limit scores) in
  total (map (fun i => law scores i * Rpower (law scores' i / law scores i) a) (seq 0 (length scores)))
    <= exp (a * (a - 1) * (epsilon ^ 2 / 8)).
Proof.
  intros A law. destruct exponential_mechanism_is_private as [l [_ H]].
  destruct scale_is_right as [P [_ [_ [[c M] [L N']]]]].
  apply bounded_range_is_concentrated with l; [| | |exact A].
  - rewrite <- L. apply softmax_is_a_distribution, N'.
  - rewrite <- L, (length_of_both _ _ _ M). apply softmax_is_a_distribution. intros Z. rewrite Z in M. inversion M.
    congruence.
  - intros i I. split; [|apply H, I]. rewrite <- L in I. apply Rdiv_lt_0_compat; [|apply exponentials_are_positive, N'].
    rewrite (nth_of_map _ _ _ 0) by exact I. apply exp_pos.
Qed.

Theorem permute_and_flip_is_private i : (i < length scores)%nat ->
  let law scores := permute_and_flip b (steps g limit scores) in law scores i <= exp epsilon * law scores' i.
Proof.
  intros I. destruct scale_is_right as [P [PB [Q [[c M] [L _]]]]]. rewrite <- Q.
  apply permute_and_flip_has_small_ratios with c; try assumption. rewrite L. exact I.
Qed.
End Mechanisms.

(* The best k by peeling: k choices of epsilon / k each, which count the candidates that are left. *)
Fixpoint peeled (law : list R -> nat -> R) (scores : list R) (chosen : list nat) : R :=
  match chosen with [] => 1 | i :: chosen => law scores i * peeled law (without i scores) chosen end.

Lemma without_is before (s : R) after : without (length before) (before ++ s :: after) = before ++ after.
Proof. induction before as [|r before IH]; [reflexivity|]. simpl. f_equal. exact IH. Qed.

Lemma without_of_both (P : R -> R -> Prop) scores scores' : Forall2 P scores scores' -> forall i,
  Forall2 P (without i scores) (without i scores').
Proof.
  induction 1 as [|s s' l l' H F IH]; intros [|i]; simpl; try constructor; try assumption. apply IH.
Qed.

Lemma softmax_is_positive b scores i : 0 <= softmax b scores i.
Proof.
  destruct scores; [|apply softmax_is_a_distribution; discriminate]. unfold softmax, share, Rdiv.
  destruct i; simpl; rewrite Rmult_0_l; lra.
Qed.

(* Both are at most e^e times the other. *)
Definition near (e u v : R) : Prop := (0 <= u <= exp e * v /\ 0 <= v <= exp e * u).

Lemma near_more e e' u v : (e <= e') -> near e u v -> near e' u v.
Proof.
  intros H [[P Q] [P' Q']]. apply Raux.exp_le in H. split; split; try assumption; eapply Rle_trans; try eassumption;
    apply Rmult_le_compat_r; assumption.
Qed.

Lemma near_times e e' u v u' v' : near e u v -> near e' u' v' -> near (e + e') (u * u') (v * v').
Proof.
  intros [[P Q] [R S]] [[P' Q'] [R' S']]. unfold near. rewrite exp_plus.
  split; (split; [apply Rmult_le_pos; assumption|]).
  - replace (exp e * exp e' * (v * v')) with (exp e * v * (exp e' * v')) by ring. apply Rmult_le_compat; assumption.
  - replace (exp e * exp e' * (u * u')) with (exp e * u * (exp e' * u')) by ring. apply Rmult_le_compat; assumption.
Qed.

Lemma near_itself e u : (0 <= e) -> (0 <= u) -> near e u u.
Proof. intros E U. apply near_more with 0%R; [exact E|]. unfold near. rewrite exp_0. lra. Qed.

Lemma near_both_ways e u v : near e u v -> near e v u.
Proof. unfold near. tauto. Qed.

Lemma range_is_near l e u v : - e <= l <= 0 -> 0 <= u -> 0 <= v -> exp l * u <= v <= exp (l + e) * u -> near e u v.
Proof.
  intros L U V [H1 H2]. split; (split; [assumption|]).
  - apply Rmult_le_reg_l with (exp l); [apply exp_pos|]. eapply Rle_trans; [exact H1|].
    rewrite <- Rmult_assoc, <- exp_plus. rewrite <- (Rmult_1_l v) at 1. apply Rmult_le_compat_r; [exact V|].
    rewrite <- exp_0. apply Raux.exp_le. lra.
  - eapply Rle_trans; [exact H2|]. apply Rmult_le_compat_r, Raux.exp_le; lra || exact U.
Qed.

Theorem top_k_is_private monotonic g limit sensitivity epsilon chosen : 0 < g -> 0 < sensitivity -> 0 < epsilon ->
  forall scores scores', neighbours monotonic sensitivity scores scores' ->
  let law scores := softmax (scale monotonic g sensitivity (epsilon / INR (length chosen))) (steps g limit scores) in
  peeled law scores chosen <= exp epsilon * peeled law scores' chosen.
Proof.
  intros G S E scores scores' N law. destruct chosen as [|i0 rest].
  { simpl. rewrite Rmult_1_r, <- exp_0. apply Raux.exp_le. lra. }
  set (chosen := i0 :: rest) in *. assert (K : 0 < INR (length chosen)) by (apply lt_0_INR; simpl; lia).
  set (part := epsilon / INR (length chosen)) in *. assert (P : 0 < part) by (apply Rdiv_lt_0_compat; assumption).
  assert (One : forall scores scores' i, neighbours monotonic sensitivity scores scores' ->
    near part (law scores i) (law scores' i)).
  { clear - G S P. intros scores scores' i N. assert (L : length scores' = length scores).
    { unfold neighbours in N. destruct monotonic; [destruct N as [N|N]|]; symmetry; apply (length_of_both _ _ _ N). }
    destruct (Nat.lt_ge_cases i (length scores)) as [I|I].
    - assert (X : scores <> []) by (intros ->; simpl in I; lia).
      destruct (exponential_mechanism_is_private monotonic g limit sensitivity part scores scores' G S P X N)
        as [l [H R]]. apply range_is_near with l; [exact H|apply softmax_is_positive..|apply R, I].
    - assert (Z : forall l, length l = length scores -> law l i = 0).
      { intros l H. unfold law, softmax, share, steps, at_least. rewrite nth_overflow by (rewrite !map_length; lia).
        unfold Rdiv. ring. }
      rewrite !Z by (reflexivity || exact L). apply near_itself; lra. }
  assert (All : forall l scores scores', neighbours monotonic sensitivity scores scores' ->
    near (INR (length l) * part) (peeled law scores l) (peeled law scores' l)).
  { clear - One. induction l as [|i l IH]; intros scores scores' N; [simpl; rewrite Rmult_0_l; apply near_itself; lra|].
    cbn [peeled length]. rewrite S_INR, Rplus_comm, Rmult_plus_distr_r, Rmult_1_l. apply near_times; [apply One, N|].
    apply IH. unfold neighbours in *. destruct monotonic; [destruct N as [N|N]; [left|right]|];
      apply without_of_both, N. }
  destruct (All chosen scores scores' N) as [[_ H] _]. unfold part in H at 1.
  replace (INR (length chosen) * (epsilon / INR (length chosen))) with epsilon in H by (field; lra). exact H.
Qed.
