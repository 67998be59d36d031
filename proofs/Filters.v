(* Budgets for adaptive analysts: whatever a program asks for in the light of the answers so far, what a ledger grants
   is private. Releases have outcomes of any type, and a program asks a finite number of times, without a bound. *)
From Coq Require Import Reals List Bool Lia Lra Psatz FinFun.
From Flocq Require Import Core.
From Dpnoise Require Import Sums Divergence Private.
Import ListNotations.
Open Scope R_scope.

(* A program stops, or asks for a release of a stated cost, and goes on by its outcome, or when it is refused. A release
   has a law of its outcomes for each data set. *)
Inductive program {Data Cost Y : Type} :=
| Stop
| Ask (cost : Cost) (release : Data -> Y -> R) (answered : Y -> program) (refused : program).
Arguments program : clear implicits.

Section Programs.
Context {Data Cost Y : Type}.

(* A filter looks at the costs paid so far and at the next one. What it refuses is neither drawn nor paid for. *)
Fixpoint granted (filter : list Cost -> bool) (paid : list Cost) (p : program Data Cost Y) : program Data Cost Y :=
  match p with
  | Stop => Stop
  | Ask cost release answered refused =>
      if filter (cost :: paid)
      then Ask cost release (fun y => granted filter (cost :: paid) (answered y)) Stop
      else granted filter paid refused
  end.

(* The law of the outcomes of all releases of a program that is refused nothing. *)
Fixpoint run (p : program Data Cost Y) (data : Data) : list Y -> R :=
  match p with
  | Stop => nothing
  | Ask _ release answered _ => after (release data) (fun y => run (answered y) data)
  end.

(* All releases that may be asked for have laws, and between neighbours what their costs say. *)
Fixpoint honest (neighbours : Data -> Data -> Prop) (holds : Cost -> (Y -> R) -> (Y -> R) -> Prop)
    (p : program Data Cost Y) : Prop :=
  match p with
  | Stop => True
  | Ask cost release answered refused =>
      (forall data, probabilities (release data)) /\
      (forall data data', neighbours data data' -> holds cost (release data) (release data')) /\
      (forall y, honest neighbours holds (answered y)) /\ honest neighbours holds refused
  end.

Variables (neighbours : Data -> Data -> Prop) (holds : Cost -> (Y -> R) -> (Y -> R) -> Prop).

Lemma run_is_a_law p data : honest neighbours holds p -> probabilities (run p data).
Proof.
  induction p as [|cost release answered IH refused _]; simpl; [intros _; apply nothing_is_a_law|].
  intros [L [_ [A _]]]. apply after_is_a_law; [apply L|]. intros y. apply IH, A.
Qed.

Lemma granted_is_honest filter p : forall paid, honest neighbours holds p ->
  honest neighbours holds (granted filter paid p).
Proof.
  induction p as [|cost release answered IH refused IH']; intros paid; simpl; [auto|].
  intros [L [H [A B]]]. destruct (filter (cost :: paid)); [|apply IH', B]. simpl. repeat split; auto; apply L.
Qed.

(* What is kept of a budget: how far apart the rest of a transcript may be, after the costs that were paid. *)
Lemma granted_keeps (keeps : list Cost -> (list Y -> R) -> (list Y -> R) -> Prop) filter p data data' :
  (forall paid, filter paid = true -> keeps paid nothing nothing) ->
  (forall cost paid P Q K L, filter (cost :: paid) = true -> probabilities P -> probabilities Q ->
    (forall y, probabilities (K y)) -> (forall y, probabilities (L y)) -> holds cost P Q ->
    (forall y, keeps (cost :: paid) (K y) (L y)) -> keeps paid (after P K) (after Q L)) ->
  honest neighbours holds p -> neighbours data data' -> forall paid, filter paid = true ->
  keeps paid (run (granted filter paid p) data) (run (granted filter paid p) data').
Proof.
  intros Stops Goes H N. induction p as [|cost release answered IH refused IH']; intros paid F; [apply Stops, F|].
  destruct H as [L [H [A B]]]. cbn [granted]. destruct (filter (cost :: paid)) eqn:E; [|apply IH'; assumption].
  apply (Goes cost); auto; intros y; apply run_is_a_law, granted_is_honest, A.
Qed.
End Programs.

(* Amounts of the costs add up to at most a limit. *)
Definition within {Cost} (limit : R) (amount : Cost -> R) (costs : list Cost) : bool :=
  if Rle_dec (sum_over amount costs) limit then true else false.

Lemma within_is {Cost} limit (amount : Cost -> R) costs :
  within limit amount costs = true <-> sum_over amount costs <= limit.
Proof. unfold within. destruct (Rle_dec _ _); split; auto; discriminate. Qed.

(* The rule of a ledger of two amounts, as of epsilon and delta, and that of one. *)
Definition both_within (e d : R) (costs : list (R * R)) : bool := within e fst costs && within d snd costs.
Definition sum_within (r : R) : list R -> bool := within r (fun cost => cost).

Section Ledgers.
Context {Data Y : Type}.
Variable neighbours : Data -> Data -> Prop.

Lemma both_within_is e d costs : both_within e d costs = true <-> sum_over fst costs <= e /\ sum_over snd costs <= d.
Proof. unfold both_within. rewrite andb_true_iff, !within_is. reflexivity. Qed.

Definition pure_and_delta (cost : R * R) : (Y -> R) -> (Y -> R) -> Prop := private (fst cost) (snd cost).

Theorem ledger_of_epsilon e d (p : program Data (R * R) Y) : 0 <= e -> 0 <= d -> honest neighbours pure_and_delta p ->
  forall data data', neighbours data data' ->
  let all := granted (both_within e d) [] p in private e d (run all data) (run all data').
Proof.
  intros E D H data data' N. cbv zeta. rewrite <- (Rminus_0_r e), <- (Rminus_0_r d) at 1.
  apply (granted_keeps neighbours pure_and_delta
    (fun paid => private (e - sum_over fst paid) (d - sum_over snd paid))); auto; [| |apply both_within_is; auto].
  - intros paid F. apply both_within_is in F. apply private_grows with 0 0; try lra;
      [apply nothing_is_a_law|apply private_from_itself].
  - intros cost paid P Q K L F HP HQ HK HL C R. apply both_within_is in F. simpl in *.
    replace (e - sum_over fst paid) with (fst cost + (e - (fst cost + sum_over fst paid))) by ring.
    replace (d - sum_over snd paid) with (snd cost + (d - (snd cost + sum_over snd paid))) by ring.
    apply private_after; auto. lra.
Qed.

Theorem ledger_of_one_order a r (p : program Data R Y) : 1 < a -> 0 <= r ->
  honest neighbours (fun cost P Q => divergence_at_most a P Q cost) p -> forall data data', neighbours data data' ->
  let all := granted (sum_within r) [] p in divergence_at_most a (run all data) (run all data') r.
Proof.
  intros A B H data data' N. cbv zeta. rewrite <- (Rminus_0_r r) at 3.
  apply (granted_keeps neighbours (fun cost P Q => divergence_at_most a P Q cost)
    (fun paid P Q => divergence_at_most a P Q (r - sum_over (fun c => c) paid))); auto; [| |apply within_is; auto].
  - intros paid F. apply within_is in F. apply divergence_grows with 0; [exact A|lra|].
    apply divergence_from_itself, nothing_is_a_law.
  - intros cost paid P Q K L F HP HQ HK HL C R. simpl in *.
    replace (r - sum_over (fun c => c) paid) with (cost + (r - (cost + sum_over (fun c => c) paid))) by ring.
    apply divergence_after; auto; [apply HP|intros y; apply HK].
Qed.

Theorem ledger_of_rho rho (p : program Data R Y) : 0 <= rho -> honest neighbours zcdp p ->
  forall data data', neighbours data data' ->
  let all := granted (sum_within rho) [] p in zcdp rho (run all data) (run all data').
Proof.
  intros B H data data' N. cbv zeta. rewrite <- (Rminus_0_r rho) at 1.
  apply (granted_keeps neighbours zcdp (fun paid => zcdp (rho - sum_over (fun c => c) paid)));
    auto; [| |apply within_is; auto].
  - intros paid F. apply within_is in F. apply zcdp_grows with 0; [lra|apply zcdp_from_itself, nothing_is_a_law].
  - intros cost paid P Q K L F HP HQ HK HL C R. simpl in *.
    replace (rho - sum_over (fun c => c) paid) with (cost + (rho - (cost + sum_over (fun c => c) paid))) by ring.
    apply zcdp_after; auto.
Qed.

(* With exceptions, of which deltas bound the probability: laws that make up all but d of these have the divergences. *)
Definition approximate_zcdp {A} (rho d : R) (P Q : A -> R) : Prop :=
  0 <= d /\ exists P' Q', probabilities P' /\ probabilities Q' /\
  (forall z, (1 - d) * P' z <= P z /\ (1 - d) * Q' z <= Q z) /\ zcdp rho P' Q'.

(* The laws of a second release are chosen for each outcome of the first, of which there are finitely many. *)
Lemma choose {X Z} (same : forall x y : X, {x = y} + {x <> y}) (z : Z) (xs : list X) (P : X -> Z -> Prop) :
  (forall x, exists z, P x z) -> exists h : X -> Z, forall x, In x xs -> P x (h x).
Proof.
  intros H. induction xs as [|x xs [h F]]; [exists (fun _ => z); intros x []|]. destruct (H x) as [k K].
  exists (fun y => if same y x then k else h y). intros y I. destruct (same y x) as [->|N]; [exact K|].
  destruct I as [->|I]; [contradiction|apply F, I].
Qed.

Lemma approximate_after (same : forall y y' : Y, {y = y'} + {y <> y'}) rho1 d1 rho2 d2 (P Q : Y -> R) K L :
  Finite Y -> 0 <= d2 -> d1 + d2 <= 1 -> approximate_zcdp rho1 d1 P Q ->
  (forall y, approximate_zcdp rho2 d2 (K y) (L y)) ->
  approximate_zcdp (rho1 + rho2) (d1 + d2) (after P K) (after Q L).
Proof.
  intros [ys Y0] D2 D [D1 [P' [Q' [HP [HQ [A Z]]]]]] H.
  assert (W : forall y, exists w : (list Y -> R) * (list Y -> R), probabilities (fst w) /\ probabilities (snd w) /\
    (forall zs, (1 - d2) * fst w zs <= K y zs /\ (1 - d2) * snd w zs <= L y zs) /\ zcdp rho2 (fst w) (snd w)).
  { intros y. destruct (H y) as [_ [l' [m' W]]]. exists (l', m'). exact W. }
  apply (choose same (nothing, nothing) ys) in W. destruct W as [w W].
  assert (V : forall p p' q q', (1 - d1) * p' <= p -> (1 - d2) * q' <= q -> 0 <= p' -> 0 <= q' ->
    (1 - (d1 + d2)) * (p' * q') <= p * q).
  { intros p p' q q' B B' R R'. assert (0 <= p' * q') by (apply Rmult_le_pos; assumption).
    assert (0 <= d1 * d2) by (apply Rmult_le_pos; assumption).
    apply Rle_trans with ((1 - d1) * p' * ((1 - d2) * q')); [nra|].
    apply Rmult_le_compat; try assumption; apply Rmult_le_pos; lra. }
  split; [lra|]. exists (after P' (fun y => fst (w y))), (after Q' (fun y => snd (w y))).
  assert (HK : forall y, probabilities (fst (w y))) by (intros y; apply W, Y0).
  assert (HL : forall y, probabilities (snd (w y))) by (intros y; apply W, Y0).
  split; [apply after_is_a_law; auto|split; [apply after_is_a_law; auto|split]].
  - intros [|y zs]; simpl; [lra|]. destruct (W y (Y0 y)) as [_ [_ [B _]]]. destruct (A y), (B zs).
    split; apply V; try assumption; [apply HP|apply HK|apply HQ|apply HL].
  - apply zcdp_after; auto. intros y. apply W, Y0.
Qed.

Theorem ledger_of_rho_and_delta (same : forall y y' : Y, {y = y'} + {y <> y'}) rho d (p : program Data (R * R) Y) :
  Finite Y -> 0 <= rho -> 0 <= d <= 1 -> honest neighbours (fun cost => approximate_zcdp (fst cost) (snd cost)) p ->
  forall data data', neighbours data data' ->
  let all := granted (both_within rho d) [] p in approximate_zcdp rho d (run all data) (run all data').
Proof.
  intros Y0 B D H data data' N. cbv zeta.
  set (keeps := fun paid (P Q : list Y -> R) => 0 <= sum_over snd paid ->
    approximate_zcdp (rho - sum_over fst paid) (d - sum_over snd paid) P Q).
  cut (keeps [] (run (granted (both_within rho d) [] p) data) (run (granted (both_within rho d) [] p) data')).
  { unfold keeps. simpl. rewrite !Rminus_0_r. intros K. apply K, Rle_refl. }
  apply (granted_keeps neighbours (fun cost => approximate_zcdp (fst cost) (snd cost)) keeps); unfold keeps; auto;
    [| |apply both_within_is; simpl; lra].
  - intros paid F E. apply both_within_is in F. assert (L := @nothing_is_a_law Y). split; [lra|].
    exists nothing, nothing. split; [exact L|split; [exact L|split]];
      [|apply zcdp_grows with 0; [lra|apply zcdp_from_itself, L]]. intros zs. generalize (proj1 L zs). split; nra.
  - intros cost paid P Q K L F _ _ _ _ C R E. apply both_within_is in F. assert (0 <= snd cost) by apply C. simpl in *.
    replace (rho - sum_over fst paid) with (fst cost + (rho - (fst cost + sum_over fst paid))) by ring.
    replace (d - sum_over snd paid) with (snd cost + (d - (snd cost + sum_over snd paid))) by ring.
    apply approximate_after; auto; [lra|lra|]. intros y. apply R. lra.
Qed.

(* The costs of a program on a transcript, after those that were paid before, the last one first. *)
Fixpoint bill {Cost} (p : program Data Cost Y) (paid : list Cost) (ys : list Y) : list Cost :=
  match p, ys with
  | Ask cost _ answered _, y :: ys => bill (answered y) (cost :: paid) ys
  | _, _ => paid
  end.

(* What is no whole transcript has the probability 0. *)
Lemma bill_passes {Cost} filter (p : program Data Cost Y) data : forall paid ys,
  run (granted filter paid p) data ys = 0 \/ granted filter paid p = Stop \/
  filter (bill (granted filter paid p) paid ys) = true.
Proof.
  induction p as [|cost release answered IH refused IH']; intros paid ys; simpl; [auto|].
  destruct (filter (cost :: paid)) eqn:F; [|apply IH']. destruct ys as [|y ys]; simpl; [auto|].
  destruct (IH y (cost :: paid) ys) as [->|[->|B]]; [left; ring| |auto]. right. right. exact F.
Qed.

(* The largest divergence of order a that implies (e, d), as far as proposition 12 of Canonne, Kamath and Steinke
   tells. *)
Definition order_budget (e d a : R) : R := e + ln (a * d) / (a - 1) - ln (1 - 1 / a).

Lemma more_within {A} a e d (P Q : A -> R) z : 1 < a -> 0 < d -> 0 <= P z -> 0 <= Q z -> (0 < P z -> 0 < Q z) ->
  more e P Q z <= d * (exp (- ((a - 1) * order_budget e d a)) * renyi_term a P Q z).
Proof.
  intros O D HP HQ PQ. eapply Rle_trans; [apply (more_is_below_terms a); assumption|]. rewrite <- Rmult_assoc.
  apply Rmult_le_compat_r; [apply term_is_nonnegative, HP|]. right. unfold Rpower.
  replace (- ((a - 1) * order_budget e d a)) with (- ((a - 1) * e) + (a - 1) * ln (1 - 1 / a) + - ln (a * d))
    by (unfold order_budget; field; lra).
  rewrite !exp_plus, (exp_Ropp (ln _)), exp_ln by nra. field. lra.
Qed.

(* A cost has a divergence for each order, and one order has to be within its budget: orders share delta. *)
Definition some_within (e d : R) (orders : list R) (costs : list (R -> R)) : bool :=
  existsb (fun a => within (order_budget e (d / INR (length orders)) a) (fun cost => cost a) costs) orders.

Definition all_orders (orders : list R) (cost : R -> R) (P Q : Y -> R) : Prop :=
  forall a, In a orders -> divergence_at_most a P Q (cost a).

(* The transcripts on which the costs of order a are at most r in the end. *)
Lemma divergence_within a r orders (p : program Data (R -> R) Y) data data' : 1 < a -> In a orders ->
  honest neighbours (all_orders orders) p -> neighbours data data' ->
  (forall ys, 0 < run p data ys -> 0 < run p data' ys) /\ forall paid,
  sum_at_most (fun ys => if within r (fun cost => cost a) (bill p paid ys)
    then renyi_term a (run p data) (run p data') ys else 0) (exp ((a - 1) * (r - sum_over (fun cost => cost a) paid))).
Proof.
  intros A I H N. induction p as [|cost release answered IH refused _].
  - split; [auto|]. intros paid. simpl. unfold within. destruct (Rle_dec _ _) as [F|_].
    + apply divergence_grows with 0; [exact A|lra|apply divergence_from_itself, nothing_is_a_law].
    + apply (at_most_grows _ 0); [apply Rlt_le, exp_pos|apply is_sum_of_zeros].
  - destruct H as [L [H [B _]]]. destruct (H data data' N a I) as [Z D].
    assert (K : forall y ys, 0 <= run (answered y) data ys) by (intros y; apply (run_is_a_law neighbours _ _ _ (B y))).
    assert (Z' : forall y ys, 0 < run (answered y) data ys -> 0 < run (answered y) data' ys)
      by (intros y; apply (IH y (B y))).
    split.
    + intros [|y ys]; simpl; [lra|]. intros X.
      destruct (proj1 (L data) y) as [P0|P0], (K y ys) as [K0|K0]; try (rewrite <- P0 in X || rewrite <- K0 in X; lra).
      apply Rmult_lt_0_compat; auto.
    + intros paid. set (rest := exp ((a - 1) * (r - (cost a + sum_over (fun cost => cost a) paid)))).
      apply (sums_after_at_most _ (fun y => rest * renyi_term a (release data) (release data') y)).
      * simpl. destruct (within _ _ _); unfold renyi_term; simpl; ring.
      * intros ys. destruct (within _ _ _); [|lra]. apply term_is_nonnegative.
        destruct ys as [|y ys]; [apply Rle_refl|apply Rmult_le_pos; [apply L|apply K]].
      * intros y. rewrite Rmult_comm. eapply at_most_le; [|apply at_most_scale; [apply term_is_nonnegative, L|
          apply (proj2 (IH y (B y)) (cost :: paid))]]. intros ys. cbn [bill run]. destruct (within _ _ _); [|lra].
        apply Req_le, (term_of_two a _ _ (fun y => run (answered y) data) (fun y => run (answered y) data') (y, ys));
          auto. apply L.
      * replace ((a - 1) * (r - sum_over (fun cost => cost a) paid))
          with ((a - 1) * (r - (cost a + sum_over (fun cost => cost a) paid)) + (a - 1) * cost a) by ring.
        rewrite exp_plus. apply at_most_scale; [apply Rlt_le, exp_pos|exact D].
Qed.

Theorem ledger_of_orders e d orders (p : program Data (R -> R) Y) : 0 <= e -> 0 < d ->
  (forall a, In a orders -> 1 < a) ->
  honest neighbours (all_orders orders) p -> forall data data', neighbours data data' ->
  let all := granted (some_within e d orders) [] p in private e d (run all data) (run all data').
Proof.
  intros E D A H data data' N. cbv zeta. generalize (bill_passes (some_within e d orders) p data []). intros B.
  generalize (granted_is_honest _ _ (some_within e d orders) p [] H). intros H'.
  set (q := granted (some_within e d orders) [] p) in *. set (share := d / INR (length orders)).
  assert (P := run_is_a_law _ _ q data H'). assert (Q := run_is_a_law _ _ q data' H').
  set (weight := fun a => share * exp (- ((a - 1) * order_budget e share a))).
  (* What an order that is within its budget says of a transcript. *)
  set (f := fun a ys => weight a * if within (order_budget e share a) (fun cost => cost a) (bill q [] ys)
    then renyi_term a (run q data) (run q data') ys else 0).
  assert (S : orders = [] \/ 0 < share).
  { destruct orders as [|a os]; [left; reflexivity|right]. apply Rdiv_lt_0_compat; [exact D|].
    apply lt_0_INR. simpl. lia. }
  assert (Q0 : q = Stop \/ q <> Stop) by (clear; destruct q; [left; reflexivity|right; discriminate]).
  destruct Q0 as [->|Q0].
  { apply private_grows with 0 0; try lra; [apply nothing_is_a_law|apply private_from_itself]. }
  assert (None : forall ys, run q data ys = 0 -> more e (run q data) (run q data') ys = 0).
  { intros ys Z. unfold more. rewrite Z, Rmax_left; [reflexivity|]. generalize (proj1 Q ys) (exp_pos e). nra. }
  apply private_is; [exact P|exact Q|]. destruct S as [S|S].
  { apply (at_most_le _ (fun _ => 0)); [|apply (at_most_grows _ 0); [lra|apply is_sum_of_zeros]]. intros ys.
    destruct (B ys) as [Z|[Z|Z]]; [rewrite None; [lra|exact Z]|contradiction|].
    unfold some_within in Z. rewrite S in Z. discriminate. }
  assert (W : forall a, 0 <= weight a) by (intros a; apply Rmult_le_pos; [lra|apply Rlt_le, exp_pos]).
  assert (F : forall ys a, 0 <= f a ys).
  { intros ys a. apply Rmult_le_pos; [apply W|]. destruct (within _ _ _); [apply term_is_nonnegative, P|lra]. }
  apply (at_most_le _ (fun ys => sum_over (fun a => f a ys) orders)).
  - intros ys. destruct (B ys) as [Z|[Z|Z]]; [rewrite None by exact Z; apply sum_over_nonnegative, F|contradiction|].
    apply existsb_exists in Z. destruct Z as [a [I Z]].
    apply Rle_trans with (sum_over (fun a => f a ys) [a]); [|apply sum_over_incl; [apply F| |]].
    + simpl. unfold f, weight, share. rewrite Z, Rplus_0_r, Rmult_assoc. apply more_within; auto; [apply P|apply Q|].
      apply (divergence_within a 0 orders q data data' (A a I) I H' N).
    + repeat constructor. simpl. tauto.
    + intros b [<-|[]]. exact I.
  - replace d with (INR (length orders) * share).
    2: { unfold share. field. intros Z. revert S. unfold share. rewrite Z. unfold Rdiv. rewrite Rinv_0. lra. }
    generalize (incl_refl orders). generalize orders at 1 3 4. intros os.
    induction os as [|a os IH]; intros I; cbn [length].
    + simpl. rewrite Rmult_0_l. apply is_sum_of_zeros.
    + rewrite S_INR, Rmult_plus_distr_r, Rplus_comm, Rmult_1_l.
      apply at_most_plus; [|apply IH; intros b J; apply I; right; exact J].
      assert (Ia : In a orders) by (apply I; left; reflexivity).
      destruct (divergence_within a (order_budget e share a) orders q data data' (A a Ia) Ia H' N) as [_ V].
      specialize (V []). simpl in V. rewrite Rminus_0_r in V. set (x := (a - 1) * order_budget e share a) in *.
      replace share with (weight a * exp x); [apply at_most_scale; [apply W|exact V]|].
      unfold weight. fold x. rewrite exp_Ropp. field. apply Rgt_not_eq, exp_pos.
Qed.

(* An odometer shows the costs so far and a slack. On some transcripts it is too low at some time: what releases gave
   until then, with probability x for one data set and y for the other, has x above e^shown y. *)
Fixpoint too_low (slack : R) (data data' : Data) (p : program Data R Y) (x y paid : R) (ys : list Y) : bool :=
  if Rlt_dec (exp (paid + slack) * y) x then true
  else match p, ys with
       | Ask cost release answered _, o :: ys =>
           too_low slack data data' (answered o) (x * release data o) (y * release data' o) (paid + cost) ys
       | _, _ => false
       end.

(* At once, or after one release more. *)
Lemma too_low_at_some_time slack data data' p x y paid ys :
  (exp (paid + slack) * y < x -> too_low slack data data' p x y paid ys = true) /\
  (forall cost release answered refused o, p = Ask cost release answered refused ->
    too_low slack data data' (answered o) (x * release data o) (y * release data' o) (paid + cost) ys = true ->
    too_low slack data data' p x y paid (o :: ys) = true).
Proof.
  split; [intros H; destruct p; simpl; destruct (Rlt_dec _ _); tauto|].
  intros cost release answered refused o -> H. simpl. rewrite H. destruct (Rlt_dec _ _); reflexivity.
Qed.

Theorem odometer_holds k d (p : program Data R Y) : 0 < k -> 0 < d ->
  honest neighbours (fun cost P Q => divergence_at_most (1 + k) P Q cost) p ->
  forall data data', neighbours data data' ->
  chance (run p data) (too_low (ln (1 / d) / k) data data' p 1 1 0) <= d.
Proof.
  intros K D H data data' N. set (slack := ln (1 / d) / k).
  set (term := fun x y => renyi_term (1 + k) (fun _ : unit => x) (fun _ => y) tt).
  cut (forall x y paid, 0 <= x -> (0 < x -> 0 < y) ->
    sum_at_most (fun ys => if too_low slack data data' p x y paid ys then x * run p data ys else 0)
      (d * (term x y * exp (- (k * paid))))).
  { intros C. apply (chance_is _ _ (run_is_a_law _ _ p data H)).
    specialize (C 1 1 0 Rle_0_1 (fun O => O)). replace (d * (term 1 1 * exp (- (k * 0)))) with d in C.
    - eapply at_most_le; [|exact C]. intros ys. cbv beta. destruct (too_low _ _ _ _ _ _ _ _); lra.
    - unfold term. rewrite term_is, ln_1, !Rmult_0_r, Ropp_0, Rplus_0_r, exp_0 by apply Rlt_0_1. ring. }
  assert (Low : forall x y paid, 0 <= x -> (0 < x -> 0 < y) -> exp (paid + slack) * y < x ->
    x <= d * (term x y * exp (- (k * paid)))).
  { intros x y paid [X|<-] Z L; [|unfold term, renyi_term; lra]. specialize (Z X). unfold term.
    rewrite term_is, <- exp_plus by assumption. rewrite <- (exp_ln x X), <- (exp_ln y Z), <- exp_plus in L.
    apply exp_lt_inv in L. rewrite <- (exp_ln x X) at 1. rewrite <- (exp_ln d D) at 1. rewrite <- exp_plus.
    apply Raux.exp_le. assert (k * slack = - ln d)
      by (unfold slack; unfold Rdiv; rewrite Rmult_1_l, ln_Rinv by exact D; field; lra).
    apply Rmult_lt_compat_l with (r := k) in L; [lra|exact K]. }
  assert (None : forall x y paid, 0 <= x -> 0 <= d * (term x y * exp (- (k * paid)))).
  { intros x y paid X. apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [apply term_is_nonnegative, X|].
    apply Rlt_le, exp_pos. }
  assert (First : forall q : program Data R Y, probabilities (run q data) -> forall x y paid, 0 <= x -> (0 < x -> 0 < y)
    -> exp (paid + slack) * y < x ->
    sum_at_most (fun ys => if too_low slack data data' q x y paid ys then x * run q data ys else 0)
      (d * (term x y * exp (- (k * paid))))).
  { intros q Q x y paid X Z A. apply (at_most_grows _ (x * 1)); [rewrite Rmult_1_r; apply Low; assumption|].
    apply (at_most_le _ (fun ys => x * run q data ys)); [|apply at_most_scale; [exact X|apply Q]]. intros ys.
    rewrite (proj1 (too_low_at_some_time _ _ _ _ _ _ _ _) A). apply Rle_refl. }
  induction p as [|cost release answered IH refused _]; intros x y paid X Z;
    (destruct (Rlt_dec (exp (paid + slack) * y) x) as [A|A];
      [apply First; auto; apply (run_is_a_law _ _ _ data H)|]).
  - apply (at_most_grows _ 0); [apply None, X|]. apply (at_most_le _ (fun _ => 0)); [|apply is_sum_of_zeros]. intros ys.
    simpl. destruct (Rlt_dec _ _); [contradiction|lra].
  - destruct H as [L [H [B _]]]. destruct (H data data' N) as [Zero D1].
    assert (R0 : forall o, 0 <= release data o) by apply L.
    apply (sums_after_at_most _ (fun o => d * (term x y * exp (- (k * (paid + cost))))
      * renyi_term (1 + k) (release data) (release data') o)).
    + simpl. destruct (Rlt_dec _ _); [contradiction|reflexivity].
    + intros ys. destruct (too_low _ _ _ _ _ _ _ _); [|lra]. apply Rmult_le_pos; [exact X|].
      destruct ys as [|o ys]; [apply Rle_refl|]. apply Rmult_le_pos; [apply R0|apply (run_is_a_law _ _ _ data (B o))].
    + intros o. set (left := exp (- (k * (paid + cost)))).
      replace (d * (term x y * left) * renyi_term (1 + k) (release data) (release data') o)
        with (d * (term (x * release data o) (y * release data' o) * left)).
      * eapply at_most_le; [|apply (IH o (B o)); [apply Rmult_le_pos; auto|]].
        -- intros ys. simpl. destruct (Rlt_dec _ _); [contradiction|].
           destruct (too_low _ _ _ _ _ _ _ _); lra.
        -- intros O. destruct X as [X|X], (R0 o) as [O'|O']; try (rewrite <- X in O || rewrite <- O' in O; lra).
           apply Rmult_lt_0_compat; auto.
      * assert (T : term (x * release data o) (y * release data' o)
          = term x y * renyi_term (1 + k) (release data) (release data') o)
          by (apply (term_of_two (1 + k) (fun _ : unit => x) (fun _ => y) (fun _ => release data)
            (fun _ => release data') (tt, o)); auto).
        rewrite T. ring.
    + replace (- (k * paid)) with (- (k * (paid + cost)) + (1 + k - 1) * cost) by ring.
      rewrite exp_plus, <- !Rmult_assoc. apply at_most_scale; [|exact D1].
      rewrite Rmult_assoc. apply None, X.
Qed.
End Ledgers.

(* The delta of a list of releases, as an accountant has it for releases that were fixed before, is no filter's. Of one
   bit, a randomised response with the ratio 3/2, then one with the ratio 2, or the bit is told with probability 2/15:
   both have (ln 2, 2/15). The program that tells it after "yes" alone has no less than 14/75. *)
Definition respond (p : R) (bit : bool) (y : option bool) : R :=
  match y with Some b => if Bool.eqb bit b then p else 1 - p | None => 0 end.
Definition tell (p : R) (bit : bool) (y : option bool) : R :=
  match y with Some b => if Bool.eqb bit b then p else 0 | None => 1 - p end.

Definition ask (release : bool -> option bool -> R) next : program bool unit (option bool) := Ask tt release next Stop.
Definition first_list := ask (respond (3 / 5)) (fun _ => ask (respond (2 / 3)) (fun _ => Stop)).
Definition second_list := ask (respond (3 / 5)) (fun _ => ask (tell (2 / 15)) (fun _ => Stop)).
Definition chooses := ask (respond (3 / 5)) (fun y =>
  ask (match y with Some false => respond (2 / 3) | _ => tell (2 / 15) end) (fun _ => Stop)).

Theorem accountant_is_no_filter :
  (forall p bit, In p [first_list; second_list] -> private (ln 2) (2 / 15) (run p bit) (run p (negb bit))) /\
  (forall d, private (ln 2) d (run chooses false) (run chooses true) -> 14 / 75 <= d).
Proof.
  set (all := [[Some true; Some true]; [Some true; Some false]; [Some true; None]; [Some false; Some true];
    [Some false; Some false]; [Some false; None]]).
  assert (E : forall p bit event, In p [first_list; second_list; chooses] ->
    chance (run p bit) event = sum_over (fun ys => if event ys then run p bit ys else 0) all).
  { intros p bit event H. apply is_sum_unique, is_sum_of_some.
    - intros [|[[]|] [|[[]|] [|y ys]]]; destruct (event _), H as [<-|[<-|[<-|[]]]], bit; simpl; lra.
    - repeat constructor; simpl; intuition discriminate.
    - intros [|[[]|] [|[[]|] [|y ys]]] Z; try (simpl; tauto); exfalso; apply Z; clear Z;
        destruct (event _), H as [<-|[<-|[<-|[]]]], bit; simpl; lra. }
  split.
  - intros p bit H event. rewrite exp_ln, !E by (try lra; simpl in *; tauto). unfold all. clear E.
    destruct H as [<-|[<-|[]]], bit; simpl;
      repeat match goal with |- context [event ?ys] => destruct (event ys) end; lra.
  - intros d H. specialize (H (fun ys => match ys with [Some false; Some false] | [Some true; Some false] => true
      | _ => false end)).
    rewrite exp_ln, !E in H by (try lra; simpl; tauto). unfold all in H. simpl in H. lra.
Qed.
