(* Quantiles by the exponential mechanism: what one row changes in the score of a candidate, and the runs of candidates
   between neighbouring values, among which the choice is made. *)
From Coquelicot Require Import Coquelicot.
From Coq Require Import Reals ZArith List Bool Permutation Sorted Lia Lra.
From Flocq Require Import Core.
From Dpnoise Require Import Values Grid Choices Choosing.
Import ListNotations.
Open Scope Z_scope.

(* Whole numbers in a row, and how many values have a property. *)
Fixpoint interval (start : Z) (count : nat) : list Z :=
  match count with O => [] | S count => start :: interval (start + 1) count end.
Definition count (f : Z -> bool) (values : list Z) : Z := Z.of_nat (length (filter f values)).

Lemma in_interval c m : forall start, In c (interval start m) <-> start <= c < start + Z.of_nat m.
Proof. induction m as [|m IH]; intros start; simpl In; [lia|]. rewrite IH. lia. Qed.

Lemma nth_of_interval m : forall start k, (k < m)%nat -> nth k (interval start m) 0 = start + Z.of_nat k.
Proof.
  induction m as [|m IH]; intros start k K; [lia|]. destruct k as [|k]; simpl nth; [lia|]. rewrite IH; lia.
Qed.

Lemma length_of_interval m : forall start, length (interval start m) = m.
Proof. induction m as [|m IH]; intros start; simpl; congruence. Qed.

Lemma interval_in_parts m k : forall start,
  interval start (m + k) = interval start m ++ interval (start + Z.of_nat m) k.
Proof.
  induction m as [|m IH]; intros start; [rewrite Z.add_0_r; reflexivity|].
  simpl. rewrite IH. do 2 f_equal. f_equal. lia.
Qed.

Definition candidates (first last : Z) : list Z := interval first (Z.to_nat (last - first + 1)).

Lemma count_of_more f x l : count f (x :: l) = (if f x then 1 else 0) + count f l.
Proof. unfold count. simpl. destruct (f x); simpl length; lia. Qed.

Lemma count_in_parts f l m : count f (l ++ m) = count f l + count f m.
Proof. unfold count. rewrite filter_app, app_length. lia. Qed.

Lemma count_in_any_order f l m : Permutation l m -> count f l = count f m.
Proof. induction 1; rewrite ?count_of_more; lia. Qed.

Lemma count_range f l : 0 <= count f l <= Z.of_nat (length l).
Proof. induction l as [|x l IH]; [easy|]. rewrite count_of_more. simpl length. destruct (f x); lia. Qed.

Lemma count_others f g l : (forall x, g x = negb (f x)) -> count g l = Z.of_nat (length l) - count f l.
Proof.
  intros H. induction l as [|x l IH]; [easy|]. rewrite !count_of_more, IH, H. cbn [length]. rewrite Nat2Z.inj_succ.
  destruct (f x); cbn [negb]; lia.
Qed.

Lemma count_none f l : Forall (fun x => f x = false) l -> count f l = 0.
Proof. induction 1 as [|x l E _ IH]; [easy|]. rewrite count_of_more, E, IH. reflexivity. Qed.

Section Quantile.
(* The quantile is a fraction between 0 and 1, part / whole. *)
Variables part whole : Z.
Hypothesis fraction : 0 < part < whole.

(* Minus the distance of n part / whole from the interval between the numbers of values below a candidate and not above
   it, times the denominator. *)
Definition score (values : list Z) (c : Z) : Z :=
  let n := Z.of_nat (length values) in
  let low := count (fun x => x <? c) values in
  let high := n - count (fun x => c <? x) values in
  - Z.max 0 (Z.max (whole * low - part * n) (part * n - whole * high)).

(* A column: None is a missing value, which is left out. *)
Definition shown (row : option Z) : list Z := match row with Some x => [x] | None => [] end.
Definition present : list (option Z) -> list Z := flat_map shown.

Inductive relation := AddRemove | Substitute.
Definition one_row_apart (r : relation) (rows rows' : list (option Z)) : Prop :=
  exists before after row other, match r with
  | AddRemove => (rows, rows') = (before ++ after, before ++ row :: after)
              \/ (rows, rows') = (before ++ row :: after, before ++ after)
  | Substitute => (rows, rows') = (before ++ row :: after, before ++ other :: after)
  end.
Definition sensitivity (r : relation) : Z :=
  match r with AddRemove => Z.max part (whole - part) | Substitute => whole end.

Theorem one_row_changes_a_score_by_little r rows rows' c : one_row_apart r rows rows' ->
  Z.abs (score (present rows') c - score (present rows) c) <= sensitivity r.
Proof.
  intros [before [after [row [other H]]]]. unfold score, sensitivity, present.
  destruct r; [destruct H as [H|H]|]; injection H as -> ->; rewrite !flat_map_app; cbn [flat_map];
    rewrite !app_length, !count_in_parts, !Nat2Z.inj_add; unfold count;
    [clear other..|]; destruct row as [x|]; try destruct other as [y|];
    cbn [shown filter]; try destruct (Z.ltb_spec x c), (Z.ltb_spec c x);
    try destruct (Z.ltb_spec y c), (Z.ltb_spec c y); cbn [length]; lia.
Qed.

(* The release: the exponential mechanism among all candidates, with these scores. *)
Definition law (r : relation) (g limit epsilon : R) (candidates rows : list Z) : nat -> R :=
  softmax (scale false g (IZR (sensitivity r)) epsilon) (steps g limit (map (fun c => IZR (score rows c)) candidates)).

Theorem quantile_is_private r g limit epsilon candidates rows rows' : (0 < g)%R -> (0 < epsilon)%R ->
  candidates <> [] -> one_row_apart r rows rows' ->
  let law rows := law r g limit epsilon candidates (present rows) in
  let all := seq 0 (length candidates) in
  (exists l, - epsilon <= l <= 0 /\ forall i, (i < length candidates)%nat ->
    exp l * law rows i <= law rows' i <= exp (l + epsilon) * law rows i)%R /\
  (forall a, 1 <= a -> total (map (fun i => law rows i * Rpower (law rows' i / law rows i) a) all)
    <= exp (a * (a - 1) * (epsilon ^ 2 / 8)))%R.
Proof.
  intros G E N H law all. assert (S : (0 < IZR (sensitivity r))%R) by (apply IZR_lt; destruct r; simpl; lia).
  assert (M : neighbours false (IZR (sensitivity r)) (map (fun c => IZR (score (present rows) c)) candidates)
    (map (fun c => IZR (score (present rows') c)) candidates)).
  { simpl. clear N law all. induction candidates; simpl; constructor; [|assumption].
    rewrite <- minus_IZR, <- abs_IZR. apply IZR_le, one_row_changes_a_score_by_little, H. }
  assert (X : map (fun c => IZR (score (present rows) c)) candidates <> []) by (intros X; apply map_eq_nil in X; auto).
  unfold all. rewrite <- (map_length (fun c => IZR (score (present rows) c)) candidates). split.
  - exact (exponential_mechanism_is_private _ g limit _ _ _ _ G S E X M).
  - exact (exponential_mechanism_is_concentrated _ g limit _ _ _ _ G S E X M).
Qed.

(* Of values in order so many have a property that no larger value has as come first. *)
Definition in_order (l : list Z) : Prop := forall i j, (i <= j < length l)%nat -> nth i l 0 <= nth j l 0.

Lemma count_in_order f l : in_order l -> (forall x y, x <= y -> f y = true -> f x = true) ->
  forall k, (k < length l)%nat -> f (nth k l 0) = true <-> Z.of_nat k < count f l.
Proof.
  intros O M. induction l as [|x l IH]; intros k K; [easy|]. rewrite count_of_more. generalize (count_range f l).
  destruct (f x) eqn:E.
  - destruct k as [|k]; cbn [nth length] in *; [rewrite E; lia|]. rewrite IH; [lia| |lia].
    intros i j J. apply (O (S i) (S j)). simpl. lia.
  - assert (N : forall j, (j < length (x :: l))%nat -> f (nth j (x :: l) 0) = false).
    { intros j J. apply not_true_is_false. intros T. rewrite (M x _ (O 0 j ltac:(lia))%nat T) in E. discriminate. }
    rewrite N, count_none; [split; [discriminate|lia]| |exact K]. apply Forall_forall. intros y Y.
    apply (In_nth _ _ 0) in Y. destruct Y as [j [J <-]]. apply (N (S j)). simpl. lia.
Qed.

(* The gaps between rows in order, of which missing ones are put at the ends. All those below the rows that are near are
   one gap, and all above them. Gap k lies between steps k and k + 1, and so many rows are before it. It is on the left
   where they are at most the quantile's rank: then it has its lower end and not its upper one, and on the right its
   upper end alone. One candidate remains, the upper end of the last gap on the left. *)
Section Runs.
Variables (column : list (option Z)) (first last : Z) (before after : nat) (below near above : list Z).
Let rows := below ++ near ++ above.
Let gaps := S (length near).
Let all := candidates first last.
Definition target : Z := part * Z.of_nat (length (present column)) + whole * Z.of_nat before.
Definition number (k : nat) : Z := Z.of_nat (length below + k).
Definition is_left (i : Z) : bool := whole * i <=? target.
Definition gap_score (k : nat) : Z := - Z.abs (whole * number k - target).
Definition step (k : nat) : Z := nth k (first :: near ++ [last]) 0.
Definition lefts : nat := Z.to_nat (count is_left (interval (number 0) (S (length near)))).
Definition place (k : nat) : list Z :=
  interval (if (k <? lefts)%nat then step k else step k + 1) (Z.to_nat (step (S k) - step k)).
Definition places : list (list Z) := map place (seq 0 (S (length near))) ++ [[step lefts]].

Hypothesis same_rows : Permutation (repeat first before ++ present column ++ repeat last after) rows.
Hypothesis rows_in_order : in_order (first :: rows ++ [last]).
(* As it is where there is nothing below, and where the gap is far from the quantile. *)
Hypothesis first_is_left : is_left (number 0) = true.
Hypothesis last_is_right : above = [] \/ is_left (number (length near)) = false.

Lemma rows_are_between : in_order rows /\ Forall (fun x => first <= x <= last) rows.
Proof.
  assert (N : forall i, (i < length rows)%nat -> nth i rows 0 = nth (S i) (first :: rows ++ [last]) 0)
    by (intros; cbn [nth]; rewrite app_nth1 by assumption; reflexivity).
  assert (L : length (first :: rows ++ [last]) = S (S (length rows))) by (simpl; rewrite app_length; simpl; lia).
  split; [intros i j J; rewrite !N by lia; apply rows_in_order; lia|].
  apply Forall_forall. intros x X. apply (In_nth _ _ 0) in X. destruct X as [i [I <-]]. rewrite N by exact I.
  split; [apply (rows_in_order 0%nat); lia|]. eapply Z.le_trans; [|apply Z.eq_le_incl, (nth_middle rows [] last 0)].
  apply (rows_in_order (S i) (S (length rows))). lia.
Qed.

Lemma step_of_row k : (k < length near)%nat -> step (S k) = nth (length below + k) rows 0.
Proof. intros K. unfold step, rows. cbn [nth]. rewrite app_nth2_plus, !app_nth1 by exact K. reflexivity. Qed.

Lemma last_step : step gaps = last.
Proof. apply nth_middle. Qed.

Lemma steps_rise i j : (i <= j <= gaps)%nat -> step i <= step j.
Proof.
  assert (P : forall k, (k <= gaps)%nat -> step k
    = nth (if k =? 0 then 0 else if k <=? length near then length below + k else S (length rows))%nat
        (first :: rows ++ [last]) 0).
  { intros [|k] K; [reflexivity|]. cbn [Nat.eqb]. destruct (Nat.leb_spec (S k) (length near)) as [L|L].
    - rewrite step_of_row, Nat.add_succ_r by exact L. cbn [nth]. rewrite app_nth1; [reflexivity|].
      unfold rows. rewrite !app_length. lia.
    - replace (S k) with gaps by (unfold gaps in *; lia). rewrite last_step. symmetry. apply (nth_middle rows). }
  intros J. rewrite !P by lia. apply rows_in_order. unfold rows. simpl. rewrite !app_length. simpl.
  destruct i, j; cbn [Nat.eqb]; try destruct (Nat.leb_spec (S i) (length near));
    try destruct (Nat.leb_spec (S j) (length near)); lia.
Qed.

Lemma rises x y : x <= y -> whole * x <= whole * y.
Proof. intros. apply Z.mul_le_mono_nonneg_l; lia. Qed.

Lemma gaps_on_the_left k : (k < gaps)%nat -> ((k < lefts)%nat <-> whole * number k <= target).
Proof.
  intros K. assert (M : forall x y, x <= y -> is_left y = true -> is_left x = true).
  { unfold is_left. intros x y X. apply rises in X. rewrite !Z.leb_le. lia. }
  assert (O : in_order (interval (number 0) gaps)).
  { intros i j J. rewrite length_of_interval in J. rewrite !nth_of_interval; lia. }
  assert (L := count_in_order is_left _ O M k). rewrite length_of_interval, nth_of_interval in L by exact K.
  replace (number 0 + Z.of_nat k) with (number k) in L by (unfold number; lia). unfold is_left at 1 in L.
  rewrite Z.leb_le in L. unfold lefts. fold gaps. lia.
Qed.

Lemma lefts_are : (1 <= lefts <= gaps)%nat.
Proof.
  split; [apply gaps_on_the_left; [unfold gaps; lia|apply Z.leb_le, first_is_left]|].
  unfold lefts. generalize (count_range is_left (interval (number 0) gaps)). rewrite length_of_interval. fold gaps. lia.
Qed.

(* The rows before a gap, but where it is one of many. *)
Lemma rows_by_gaps f k : (forall x y, x <= y -> f y = true -> f x = true) -> (k < gaps)%nat ->
  (f (step k) = true -> (0 < k)%nat \/ below = [] -> number k <= count f rows) /\
  (f (step (S k)) = false -> (k < length near)%nat \/ above = [] -> count f rows <= number k).
Proof.
  intros M K. assert (R := count_in_order f rows (proj1 rows_are_between) M).
  assert (L : length rows = (length below + length near + length above)%nat) by (unfold rows; rewrite !app_length; lia).
  generalize (count_range f rows). unfold number, gaps in *. intros C. split; intros F E.
  - destruct k as [|k]; [destruct E as [E| ->]; simpl; lia|]. rewrite step_of_row in F by lia. apply R in F; lia.
  - destruct (Nat.lt_ge_cases k (length near)) as [J|J]; [|destruct E as [E|E]; rewrite ?E in L; simpl in L; lia].
    rewrite step_of_row in F by exact J. apply Z.nlt_ge. intros X. apply R in X; [congruence|lia].
Qed.

Let B c := count (fun x => x <? c) rows.
Let H c := count (fun x => x <=? c) rows.

Lemma rows_of_gap k c : (k < gaps)%nat ->
  (step k <= c -> (0 < k)%nat \/ below = [] -> whole * number k <= whole * H c) /\
  (step k < c -> (0 < k)%nat \/ below = [] -> whole * number k <= whole * B c) /\
  (c < step (S k) -> (k < length near)%nat \/ above = [] -> whole * H c <= whole * number k) /\
  (c <= step (S k) -> (k < length near)%nat \/ above = [] -> whole * B c <= whole * number k).
Proof.
  intros K. destruct (rows_by_gaps (fun x => x <=? c) k ltac:(intros x y; rewrite !Z.leb_le; lia) K) as [P Q].
  destruct (rows_by_gaps (fun x => x <? c) k ltac:(intros x y; rewrite !Z.ltb_lt; lia) K) as [P' Q'].
  rewrite Z.leb_le in P. rewrite Z.leb_gt in Q. rewrite Z.ltb_lt in P'. rewrite Z.ltb_ge in Q'.
  repeat split; intros; apply rises; auto.
Qed.

Lemma score_by_rows c : first <= c <= last -> whole * B c <= whole * H c /\ target <= whole * H last /\
  score (present column) c = - Z.max 0 (Z.max (whole * B c - target) (target - whole * H c)).
Proof.
  intros C. split.
  { apply rises. unfold B, H. generalize rows. clear. intros l. induction l as [|x l IH]; [easy|].
    rewrite !count_of_more. destruct (Z.ltb_spec x c), (Z.leb_spec x c); lia. }
  assert (F := proj2 rows_are_between).
  assert (BF : c = first -> B c = 0).
  { intros ->. apply count_none. eapply Forall_impl; [|exact F]. intros x X. apply Z.ltb_ge, X. }
  assert (HL : count (fun x => last <? x) rows = 0).
  { apply count_none. eapply Forall_impl; [|exact F]. intros x X. apply Z.ltb_ge, X. }
  assert (HO : forall d, H d = Z.of_nat (length rows) - count (fun x => d <? x) rows)
    by (intros; apply count_others; intros x; apply Z.leb_antisym).
  rewrite !HO, HL. unfold B, score, target in *. rewrite <- !(count_in_any_order _ _ _ same_rows), !count_in_parts in *.
  rewrite <- (Permutation_length same_rows), !app_length, !repeat_length, !Nat2Z.inj_add.
  assert (R : forall f x k, count f (repeat x k) = if f x then Z.of_nat k else 0).
  { clear. intros f x. induction k as [|k IH]; [destruct (f x); reflexivity|]. simpl repeat. rewrite count_of_more, IH.
    destruct (f x); lia. }
  rewrite !R in *. generalize (count_range (fun x => x <? c) (present column)).
  generalize (count_range (fun x => c <? x) (present column)). set (n := Z.of_nat (length (present column))) in *.
  assert (0 <= part * n) by (apply Z.mul_nonneg_nonneg; lia).
  assert (part * n <= whole * n) by (apply Z.mul_le_mono_nonneg_r; lia).
  assert (0 <= whole * Z.of_nat before) by (apply Z.mul_nonneg_nonneg; lia).
  assert (0 <= whole * Z.of_nat after) by (apply Z.mul_nonneg_nonneg; lia). intros.
  split; [lia|]. assert (c = last -> count (fun x => c <? x) (present column) = 0).
  { intros ->.
    generalize (count_range (fun x => last <? x) (present column)). destruct (last <? first), (last <? last); lia. }
  destruct (Z.ltb_spec first c), (Z.ltb_spec last c), (Z.ltb_spec c first), (Z.ltb_spec c last); lia.
Qed.

(* Every candidate of a gap has its score, or where it is one of many at most that; and the remaining one has 0. *)
Theorem gaps_have_their_scores k c : (k < gaps)%nat -> In c (place k) -> score (present column) c <= gap_score k /\
  ((0 < k)%nat \/ below = [] -> (k < length near)%nat \/ above = [] -> score (present column) c = gap_score k).
Proof.
  intros K C. destruct (rows_of_gap k c K) as [P [P' [Q' Q]]].
  generalize (steps_rise 0 k ltac:(lia)) (steps_rise (S k) gaps ltac:(unfold gaps in *; lia)). rewrite last_step.
  change (step 0) with first. intros. assert (I := gaps_on_the_left k K).
  apply in_interval in C. destruct (score_by_rows c ltac:(destruct (k <? lefts)%nat; lia)) as [BH [_ ->]].
  unfold gap_score. destruct (Nat.ltb_spec k lefts) as [J|J].
  - assert (E : (k < length near)%nat \/ above = []).
    { destruct last_is_right as [A|A]; [right; exact A|left]. apply Z.leb_gt in A. apply I in J.
      destruct (Nat.eq_dec k (length near)) as [->|]; unfold gaps in K; lia. }
    specialize (Q' ltac:(lia) E). split; [lia|]. intros E' _. specialize (P ltac:(lia) E'). lia.
  - assert (E : (0 < k)%nat \/ below = []) by (generalize lefts_are; lia).
    specialize (P' ltac:(lia) E). split; [lia|]. intros _ E'. specialize (Q ltac:(lia) E'). lia.
Qed.

Lemma value_has_score_0 : score (present column) (step lefts) = 0.
Proof.
  destruct lefts_are as [L U]. assert (K : (lefts - 1 < gaps)%nat) by lia.
  assert (I := proj1 (gaps_on_the_left _ K) ltac:(lia)). destruct (rows_of_gap _ (step lefts) K) as [_ [_ [_ Q]]].
  replace (S (lefts - 1)) with lefts in Q by lia.
  generalize (steps_rise 0 lefts ltac:(lia)) (steps_rise lefts gaps ltac:(lia)). rewrite last_step.
  change (step 0) with first. intros. destruct (score_by_rows (step lefts) ltac:(lia)) as [_ [T ->]].
  specialize (Q ltac:(lia)). assert (X : target <= whole * H (step lefts)).
  { destruct (Nat.eq_dec lefts gaps) as [E|E]; [rewrite E, last_step; exact T|].
    destruct (rows_of_gap lefts (step lefts) ltac:(lia)) as [P _]. specialize (P ltac:(lia) ltac:(lia)).
    generalize (gaps_on_the_left lefts ltac:(lia)). lia. }
  destruct last_is_right as [A|A]; [specialize (Q (or_intror A)); lia|]. apply Z.leb_gt in A.
  assert (lefts - 1 <> length near)%nat by (intros E; rewrite E in I; lia). unfold gaps in *. lia.
Qed.

(* Together they are all candidates, each of them once. *)
Lemma places_in_a_row side j : forall a, (a + j <= gaps)%nat ->
  (forall k, (a <= k < a + j)%nat -> (k <? lefts)%nat = side) -> concat (map place (seq a j))
    = interval (if side then step a else step a + 1) (Z.to_nat (step (a + j) - step a)).
Proof.
  induction j as [|j IH]; intros a L E; [rewrite Nat.add_0_r, Z.sub_diag; reflexivity|].
  generalize (steps_rise a (a + j) ltac:(lia)) (steps_rise (a + j) (S (a + j)) ltac:(lia)). intros.
  rewrite seq_S, map_app, concat_app, IH by (lia || (intros; apply E; lia)). cbn [map concat]. unfold place.
  rewrite E, app_nil_r, Nat.add_succ_r by lia.
  replace (if side then step (a + j) else step (a + j) + 1)
    with ((if side then step a else step a + 1) + Z.of_nat (Z.to_nat (step (a + j) - step a))) by (destruct side; lia).
  rewrite <- interval_in_parts. f_equal. lia.
Qed.

Theorem runs_cover : Permutation (concat places) (candidates first last).
Proof.
  destruct lefts_are as [_ U]. unfold places, candidates. fold gaps. rewrite concat_app.
  replace gaps with (lefts + (gaps - lefts))%nat by lia. rewrite seq_app, map_app, concat_app.
  rewrite (places_in_a_row true) by (lia || (intros; apply Nat.ltb_lt; lia)).
  rewrite (places_in_a_row false) by (lia || (intros; apply Nat.ltb_ge; lia)). cbn [Nat.add].
  replace (lefts + (gaps - lefts))%nat with gaps by lia.
  generalize (steps_rise 0 lefts ltac:(lia)) (steps_rise lefts gaps ltac:(lia)). rewrite last_step.
  change (step 0) with first. intros. replace (Z.to_nat (last - first + 1))
    with (Z.to_nat (step lefts - first) + S (Z.to_nat (last - step lefts)))%nat by lia.
  rewrite interval_in_parts, <- app_assoc. apply Permutation_app_head. cbn [interval concat app].
  replace (first + Z.of_nat (Z.to_nat (step lefts - first))) with (step lefts) by lia.
  rewrite Permutation_app_comm. reflexivity.
Qed.

(* The runs as the code hands them on: lengths, and scores rounded and raised alike. *)
Variables (g limit : R).
Hypothesis G : (0 < g)%R.
Definition in_steps (score : Z) : R := Rmax (- limit) (IZR (nearest g (IZR score))).
Definition runs : list (nat * R) :=
  map (fun k => (Z.to_nat (step (S k) - step k), in_steps (gap_score k))) (seq 0 (S (length near)))
    ++ [(1%nat, in_steps 0)].
Let own c := in_steps (score (present column) c).

Lemma scores_of_runs (P : R -> R -> Prop) :
  (forall k c, (k < gaps)%nat -> In c (place k) -> P (in_steps (gap_score k)) (own c)) ->
  P (in_steps 0) (in_steps 0) -> Forall2 P (points runs) (map own (concat places)).
Proof.
  intros E E0. unfold points, runs, places. rewrite flat_map_app, concat_app, map_app. apply Forall2_app.
  - assert (K : Forall (fun k => k < gaps)%nat (seq 0 gaps)) by (apply Forall_forall; intros k; rewrite in_seq; lia).
    fold gaps. induction K as [|k l K _ IH]; [constructor|]. cbn [map flat_map concat]. rewrite map_app.
    apply Forall2_app; [|exact IH].
    replace (Z.to_nat (step (S k) - step k)) with (length (place k)) by apply length_of_interval.
    specialize (fun c => E k c K). clear - E.
    induction (place k) as [|c p IH]; simpl; constructor; auto using in_eq, in_cons.
  - constructor; [|constructor]. unfold own. rewrite value_has_score_0. exact E0.
Qed.

(* Some candidate has the score 0, so that all are raised alike by the law of all candidates. *)
Lemma law_is r epsilon c : In c all -> let b := scale false g (IZR (sensitivity r)) epsilon in
  (law r g limit epsilon all (present column) (Z.to_nat (c - first))
  = exp (own c / b) / total (map (fun c => exp (own c / b)) all))%R.
Proof.
  intros C b. assert (Z0 : nearest g 0 = 0).
  { unfold nearest. apply Zfloor_imp. unfold Rdiv. rewrite Rmult_0_l. simpl. lra. }
  unfold law. fold b. replace (steps _ _ _) with (map own all).
  - unfold softmax, share. rewrite map_map. f_equal. apply in_interval in C.
    unfold all, candidates. rewrite (nth_of_map _ _ _ 0), nth_of_interval by (rewrite ?length_of_interval; lia).
    do 3 f_equal. lia.
  - unfold steps, at_least, own, in_steps. rewrite !map_map.
    set (rounded := map (fun c => IZR (nearest g (IZR (score (present column) c)))) all).
    assert (best rounded = 0%R) as ->; [|rewrite Rminus_0_l; reflexivity]. apply Rle_antisym.
    + assert (I : In (best rounded) rounded).
      { apply best_is_there. unfold rounded. destruct all; [contradiction|discriminate]. }
      apply in_map_iff in I. destruct I as [d [<- _]]. rewrite <- Z0.
      apply IZR_le, nearest_rises, IZR_le; [exact G|]. unfold score. lia.
    + apply at_most_best, in_map_iff. exists (step lefts). rewrite value_has_score_0, Z0. split; [reflexivity|].
      apply (Permutation_in _ runs_cover). unfold places. rewrite concat_app. apply in_or_app. right. left. reflexivity.
Qed.

(* A run is chosen, and a candidate evenly in it, which has the law of points; then it is accepted with the quotient of
   its own weight and that of its run. The first that is accepted has the law of the choice among all candidates. Where
   no gap is one of many, both weights are the same. *)
Theorem quantile_by_runs r epsilon i : (0 < epsilon)%R -> (i < length (concat places))%nat ->
  let weight s := exp (s / scale false g (IZR (sensitivity r)) epsilon) in
  let proposed := map weight (points runs) in
  let weights := map (fun c => weight (in_steps (score (present column) c))) (concat places) in
  (0 <= missed proposed weights < 1)%R /\
  is_series (fun n => missed proposed weights ^ n * accepted proposed weights i)%R
    (law r g limit epsilon all (present column) (Z.to_nat (nth i (concat places) 0 - first))) /\
  (below = [] -> above = [] -> proposed = weights).
Proof.
  intros E I weight proposed weights.
  assert (B0 : (0 < scale false g (IZR (sensitivity r)) epsilon)%R).
  { apply Rdiv_lt_0_compat; [|exact E]. apply Rmult_lt_0_compat; [lra|]. eapply Rlt_le_trans; [|apply Zceil_ub].
    apply Rdiv_lt_0_compat; [apply IZR_lt; destruct r; simpl; lia|exact G]. }
  assert (M : weights = map weight (map own (concat places))) by (unfold weights; rewrite map_map; reflexivity).
  assert (T : (total weights = total (map (fun c => weight (own c)) all))%R).
  { unfold weights. apply total_in_any_order, Permutation_map, runs_cover. }
  assert (C : In (nth i (concat places) 0) all) by (apply (Permutation_in _ runs_cover), nth_In, I).
  replace (law _ _ _ _ _ _ _) with (share weights i).
  2: { rewrite law_is by exact C. unfold share. rewrite T. f_equal.
    apply (nth_of_map (fun c => weight (own c)) _ i 0), I. }
  rewrite <- and_assoc. split.
  - apply proposals_have_the_law.
    + rewrite M. eapply map_of_both; [|apply (scores_of_runs (fun s s' => s' <= s)%R)].
      * intros s s' H'. split; [apply Rlt_le, exp_pos|]. apply Raux.exp_le, Rmult_le_compat_r; [|exact H'].
        apply Rlt_le, Rinv_0_lt_compat, B0.
      * intros k c K D. apply Rle_max_compat_l, IZR_le, nearest_rises, IZR_le, gaps_have_their_scores; assumption.
      * apply Rle_refl.
    + rewrite T, <- (map_map own weight). apply exponentials_are_positive. intros N. apply map_eq_nil in N.
      rewrite N in C. exact C.
  - intros Eb Ea. rewrite M. unfold proposed. f_equal.
    assert (F : Forall2 eq (points runs) (map own (concat places))); [|clear - F; induction F; congruence].
    apply scores_of_runs; [|reflexivity]. intros k c K D. unfold own. f_equal. symmetry.
    apply gaps_have_their_scores; auto.
Qed.
End Runs.
End Quantile.

(* Several quantiles: a tree of choices, each among the places between two that were released before, or none where
   there is no room. The rows below the place that is released go to one side, all others to the other. *)
Inductive plan := Leaf | Node (part whole : Z) (g epsilon : R) (before after : plan).
Inductive answer := Nothing | Released (place : Z) (before after : answer).

(* The mean of f over the answers, in which chances are those of f that is 0 or 1. *)
Fixpoint mean_answer (limit : R) (p : plan) (rows : list Z) (low high : Z) (f : answer -> R) : R :=
  match p with
  | Leaf => f Nothing
  | Node part whole g epsilon before after =>
      let next place :=
        mean_answer limit before (filter (fun x => x <? place) rows) low place (fun a =>
        mean_answer limit after (filter (fun x => negb (x <? place)) rows) place high (fun a' =>
        f (Released place a a'))) in
      let chance place :=
        law part whole AddRemove g limit epsilon (candidates low high) rows (Z.to_nat (place - low)) in
      if low =? high then next low else total (map (fun place => chance place * next place)%R (candidates low high))
  end.

Fixpoint is_valid (p : plan) : Prop :=
  match p with
  | Leaf => True
  | Node part whole g epsilon before after =>
      0 < part < whole /\ (0 < g)%R /\ (0 < epsilon)%R /\ is_valid before /\ is_valid after
  end.

(* The largest sum of epsilons on a path from the first choice down. *)
Fixpoint cost (p : plan) : R :=
  match p with Leaf => 0 | Node _ _ _ epsilon before after => epsilon + Rmax (cost before) (cost after) end%R.

Lemma candidates_by_index (h : nat -> R) low m : forall k,
  map (fun c => h (Z.to_nat (c - low))) (interval (low + Z.of_nat k) m) = map h (seq k m).
Proof.
  induction m as [|m IH]; intros k; [reflexivity|]. cbn [interval seq map]. rewrite <- IH. f_equal; [f_equal; lia|].
  do 2 f_equal. lia.
Qed.

(* Some answer is released. *)
Theorem answers_are_a_distribution limit p : forall rows low high f, low <= high -> (forall a, f a = 1%R) ->
  mean_answer limit p rows low high f = 1%R.
Proof.
  induction p as [|part whole g epsilon p IH p' IH']; intros rows low high f L F; cbn [mean_answer]; [apply F|].
  destruct (Z.eqb_spec low high) as [<-|_]; [apply IH; [lia|]; intros a; apply IH'; [lia|intros; apply F]|].
  set (values := candidates low high). unfold law. set (law := softmax _ _).
  rewrite (map_ext_in _ (fun place => law (Z.to_nat (place - low)))).
  - assert (X := candidates_by_index law low (Z.to_nat (high - low + 1)) 0). change (Z.of_nat 0) with 0 in X.
    rewrite Z.add_0_r in X. unfold values at 1, candidates. rewrite X.
    assert (N : length (steps g limit (map (fun c => IZR (score part whole rows c)) values))
      = Z.to_nat (high - low + 1)) by
      (unfold steps, at_least, values, candidates; rewrite !map_length; apply length_of_interval).
    rewrite <- N. apply softmax_is_a_distribution. intros E. rewrite E in N. simpl in N. lia.
  - intros place I. apply in_interval in I. rewrite IH, Rmult_1_r; [reflexivity|lia|]. intros a. apply IH'; [lia|].
    intros; apply F.
Qed.

Lemma totals_are_near {A} e (f f' : A -> R) l : (forall a, In a l -> near e (f a) (f' a)) ->
  near e (total (map f l)) (total (map f' l)).
Proof.
  intros H. unfold total, near. induction l as [|a l IH]; simpl; [lra|].
  destruct (H a (or_introl eq_refl)). destruct (IH (fun b I => H b (or_intror I))). unfold total in *. lra.
Qed.

Lemma choices_are_near part whole g limit epsilon before x after low high place :
  0 < part < whole -> (0 < g)%R -> (0 < epsilon)%R -> In place (candidates low high) ->
  let chance rows := law part whole AddRemove g limit epsilon (candidates low high) rows (Z.to_nat (place - low)) in
  near epsilon (chance (before ++ x :: after)) (chance (before ++ after)).
Proof.
  intros F G E I chance. apply in_interval in I.
  destruct (quantile_is_private part whole F AddRemove g limit epsilon (candidates low high)
    (map Some (before ++ after)) (map Some (before ++ x :: after)) G E) as [[l [[L U] H]] _].
  - unfold candidates. intros N. apply (f_equal (@length Z)) in N. rewrite length_of_interval in N. simpl in N. lia.
  - exists (map Some before), (map Some after), (Some x), None. left. rewrite !map_app. reflexivity.
  - assert (S : forall m, present (map Some m) = m) by (intros m; induction m as [|y m IH]; simpl; congruence).
    specialize (H (Z.to_nat (place - low))). rewrite !S in H. fold (chance (before ++ after)) in H.
    unfold candidates in H. rewrite length_of_interval in H.
    apply near_both_ways, range_is_near with l; try apply softmax_is_positive; [lra|apply H; lia].
Qed.

Lemma means_are_near limit p : forall rows low high e f f', (forall a, near e (f a) (f' a)) ->
  near e (mean_answer limit p rows low high f) (mean_answer limit p rows low high f').
Proof.
  induction p as [|part whole g epsilon p IH p' IH']; intros rows low high e f f' H; cbn [mean_answer]; [apply H|].
  destruct (low =? high); [auto|]. apply totals_are_near. intros place _. rewrite <- (Rplus_0_l e).
  apply near_times; [apply near_itself; [lra|apply softmax_is_positive]|auto].
Qed.

(* A row is on one side of every place, and so in the choices of one path. *)
Lemma plans_are_near limit p : is_valid p -> forall before x after low high e f f', (forall a, near e (f a) (f' a)) ->
  near (cost p + e) (mean_answer limit p (before ++ x :: after) low high f)
    (mean_answer limit p (before ++ after) low high f').
Proof.
  induction p as [|part whole g epsilon p IH p' IH']; intros V before x after low high e f f' H; cbn [mean_answer cost].
  - rewrite Rplus_0_l. apply H.
  - destruct V as [F [G [E [V V']]]]. rewrite Rplus_assoc.
    assert (Next : forall place, near (Rmax (cost p) (cost p') + e)
      (mean_answer limit p (filter (fun x => x <? place) (before ++ x :: after)) low place (fun a =>
        mean_answer limit p' (filter (fun x => negb (x <? place)) (before ++ x :: after)) place high (fun a' =>
        f (Released place a a'))))
      (mean_answer limit p (filter (fun x => x <? place) (before ++ after)) low place (fun a =>
        mean_answer limit p' (filter (fun x => negb (x <? place)) (before ++ after)) place high (fun a' =>
        f' (Released place a a'))))).
    { intros place. rewrite !filter_app. cbn [filter]. destruct (x <? place); simpl negb; cbv iota.
      - apply near_more with (cost p + e)%R; [apply Rplus_le_compat_r, Rmax_l|]. apply IH; [exact V|].
        intros a. apply means_are_near. auto.
      - apply near_more with (cost p' + e)%R; [apply Rplus_le_compat_r, Rmax_r|]. apply means_are_near.
        intros a. apply IH'; auto. }
    destruct (low =? high); [apply near_more with (2 := Next low); lra|].
    apply totals_are_near. intros place I. apply near_times; [apply choices_are_near; assumption|apply Next].
Qed.

(* For every event, and more generally every f. Who replaces a row removes one and adds another. *)
Theorem quantiles_are_private r limit p epsilon column column' low high f : is_valid p ->
  (cost p <= match r with AddRemove => epsilon | Substitute => epsilon / 2 end)%R -> (0 <= epsilon)%R ->
  one_row_apart r column column' -> (forall a, 0 <= f a)%R ->
  (mean_answer limit p (present column) low high f <= exp epsilon * mean_answer limit p (present column') low high f)%R.
Proof.
  intros V C E [before [after [row [other H]]]] P. set (d := match r with AddRemove => _ | _ => _ end) in C.
  assert (D : (0 <= d)%R) by (destruct r; unfold d; lra).
  assert (One : forall row, near d (mean_answer limit p (present (before ++ row :: after)) low high f)
    (mean_answer limit p (present (before ++ after)) low high f)).
  { intros x. unfold present. rewrite !flat_map_app. destruct x as [x|].
    - apply near_more with (cost p + 0)%R; [lra|]. apply plans_are_near; [exact V|].
      intros a. apply near_itself; auto with real.
    - apply means_are_near. intros a. apply near_itself; auto. }
  destruct r; [destruct H as [H|H]|]; injection H as -> ->.
  - apply (One row).
  - apply (One row).
  - destruct (One row) as [[_ Q] _], (One other) as [_ [_ Q']].
    eapply Rle_trans; [exact Q|]. replace (exp epsilon) with (exp d * exp d)%R.
    + rewrite Rmult_assoc. apply Rmult_le_compat_l; [apply Rlt_le, exp_pos|exact Q'].
    + unfold d. rewrite <- exp_plus. f_equal. lra.
Qed.
