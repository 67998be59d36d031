(* Loops that fetch the words of some blocks at once, and then draw further words for what these leave open: every unit
   of the stream, a byte or a bit, is read once. *)
From Coq Require Import ZArith List Bool Lia Permutation.
Import ListNotations.
Open Scope Z_scope.

Fixpoint range (start : Z) (count : nat) : list Z :=
  match count with O => [] | S count => start :: range (start + 1) count end.

(* The words of a block: how many units they have, and which ones each lane reads. *)
Record layout := Layout { size : nat; lanes : nat; place : Z -> list Z }.
Definition every_unit_once (l : layout) : Prop :=
  Permutation (flat_map (place l) (range 0 (lanes l))) (range 0 (size l)).

(* Words of some widths, one after another, each of which all lanes have before the next one comes. *)
Fixpoint places (lanes start : Z) (widths : list nat) (lane : Z) : list Z :=
  match widths with
  | [] => []
  | n :: widths =>
      let width := Z.of_nat n in range (start + width * lane) n ++ places lanes (start + lanes * width) widths lane
  end.
Definition by_words (lanes : nat) (widths : list nat) : layout :=
  let count := Z.of_nat lanes in Layout (lanes * list_sum widths) lanes (places count 0 widths).
Definition planar (parts lanes : nat) : layout := by_words lanes (repeat 1%nat parts).

(* The units of the stream that each lane of some blocks reads, where their words begin at the unit `start`. *)
Definition block (l : layout) (start : Z) : list (list Z) :=
  map (fun lane => map (Z.add start) (place l lane)) (range 0 (lanes l)).
Fixpoint blocks (l : layout) (start : Z) (count : nat) : list (list Z) :=
  match count with O => [] | S count => block l start ++ blocks l (start + Z.of_nat (size l)) count end.

(* A run: `fetch` says how many blocks are fetched at once, and how they are laid out, while so many values are missing.
   `gain` and `further`, which may depend on all words in any way, say how many values the blocks of a fetch give, and
   how many units are drawn one after another before the next one. *)
Section Run.
Variables (fetch : Z -> nat * layout) (gain : nat -> Z -> Z) (further : nat -> nat).

Fixpoint run (fuel number : nat) (missing start : Z) : list (list Z) :=
  match fuel with
  | O => []
  | S fuel =>
      if missing <=? 0 then [] else
      let '(count, l) := fetch missing in
      let behind := start + Z.of_nat count * Z.of_nat (size l) in
      blocks l start count ++ range behind (further number)
        :: run fuel (S number) (missing - gain number missing) (behind + Z.of_nat (further number))
  end.

Lemma range_app start a b : range start (a + b) = range start a ++ range (start + Z.of_nat a) b.
Proof.
  revert start. induction a as [|a IH]; intros start; cbn [range Nat.add app]; [f_equal; lia|].
  rewrite IH. do 3 f_equal. lia.
Qed.

Lemma range_shift c start n : map (Z.add c) (range start n) = range (c + start) n.
Proof.
  revert start. induction n as [|n IH]; intros start; [reflexivity|]. cbn [range map]. rewrite IH. do 2 f_equal. lia.
Qed.

Lemma block_is l start : every_unit_once l -> Permutation (concat (block l start)) (range start (size l)).
Proof.
  unfold every_unit_once. intros H. replace (range start (size l)) with (map (Z.add start) (range 0 (size l)))
    by (rewrite range_shift, Z.add_0_r; reflexivity).
  rewrite <- H, flat_map_concat_map, concat_map, map_map. reflexivity.
Qed.

Lemma blocks_are l count : every_unit_once l -> forall start,
  Permutation (concat (blocks l start count)) (range start (count * size l)).
Proof.
  intros H. induction count as [|count IH]; intros start; [reflexivity|]. cbn [blocks Nat.mul].
  rewrite concat_app, range_app. apply Permutation_app; [apply block_is, H|apply IH].
Qed.

(* What all lanes and all further draws read is the stream so far, every unit once. *)
Theorem every_unit_is_read_once : (forall missing, every_unit_once (snd (fetch missing))) ->
  forall fuel number missing start, exists drawn,
    Permutation (concat (run fuel number missing start)) (range start drawn).
Proof.
  intros H. induction fuel as [|fuel IH]; intros number missing start; [exists 0%nat; reflexivity|]. cbn [run].
  destruct (missing <=? 0); [exists 0%nat; reflexivity|]. generalize (H missing).
  destruct (fetch missing) as [count l]. cbn [snd]. intros L.
  set (behind := start + Z.of_nat count * Z.of_nat (size l)).
  destruct (IH (S number) (missing - gain number missing) (behind + Z.of_nat (further number))) as [drawn D].
  exists (count * size l + (further number + drawn))%nat. rewrite concat_app, !range_app. cbn [concat].
  rewrite Nat2Z.inj_mul. fold behind. rewrite (blocks_are l count L start), D. reflexivity.
Qed.

Theorem no_unit_is_read_twice : (forall missing, every_unit_once (snd (fetch missing))) ->
  forall fuel number missing start, NoDup (concat (run fuel number missing start)).
Proof.
  intros H fuel number missing start. destruct (every_unit_is_read_once H fuel number missing start) as [drawn D].
  apply (Permutation_NoDup (Permutation_sym D)). clear. revert start.
  induction drawn as [|n IH]; intros start; constructor; [|apply IH].
  assert (M : forall m s x, In x (range s m) -> s <= x).
  { induction m as [|m I]; intros s x; [intros []|]. intros [->|X]; [lia|]. apply I in X. lia. }
  intros X. apply M in X. lia.
Qed.
End Run.

Lemma flat_map_both {A B} (f g : A -> list B) l :
  Permutation (flat_map (fun x => f x ++ g x) l) (flat_map f l ++ flat_map g l).
Proof.
  induction l as [|x l IH]; [reflexivity|]. cbn [flat_map]. rewrite IH, <- !app_assoc. apply Permutation_app_head.
  rewrite !app_assoc. apply Permutation_app_tail, Permutation_app_comm.
Qed.

Lemma words_are lanes widths : every_unit_once (by_words lanes widths).
Proof.
  assert (H : forall width base n s, flat_map (fun lane => range (base + Z.of_nat width * lane) width) (range s n)
    = range (base + Z.of_nat width * s) (n * width)).
  { intros width base. induction n as [|n IH]; intros s; [reflexivity|]. cbn [range flat_map Nat.mul].
    rewrite IH, range_app. do 2 f_equal. lia. }
  unfold every_unit_once, by_words. cbn [place Blocks.lanes size]. generalize 0 at 1 3.
  induction widths as [|n widths IH]; intros start; cbn [places list_sum fold_right].
  - rewrite Nat.mul_0_r. induction (range 0 lanes); simpl; auto.
  - rewrite flat_map_both, H, IH, Nat.mul_add_distr_l, range_app. apply Permutation_refl'. f_equal; f_equal; lia.
Qed.

(* The loops: numbers of alias tables; values of trials, by a bin, an offset and an acceptance word; coins; bits that
   are flipped; and k-ary reports, by a coin and an index word. *)
Definition fetch_numbers (digits : nat) (missing : Z) : nat * layout :=
  (if missing <? 256 then 1%nat else 4%nat, planar (8 * digits) 64).
Definition fetch_trials (offset_bytes : nat) (missing : Z) : nat * layout :=
  let widths := [4; offset_bytes; 8]%nat in
  if missing <=? 8 then (1%nat, by_words 16 widths)
  else (if missing <? 256 then 1%nat else 4%nat, by_words 64 widths).
(* Coins, a tile after the other. Of bits that are flipped more tiles are fetched at once, which comes to the same, as
   no further words are drawn. *)
Definition fetch_tiles (planes : nat) (missing : Z) : nat * layout := (1%nat, planar planes 512).
Definition fetch_reports (coin_bytes index_bytes : nat) (missing : Z) : nat * layout :=
  (1%nat, by_words (Z.to_nat (Z.min missing 1024)) [coin_bytes; index_bytes]).

Theorem loops_use_no_unit_twice :
  (forall digits missing, every_unit_once (snd (fetch_numbers digits missing))) /\
  (forall offset_bytes missing, every_unit_once (snd (fetch_trials offset_bytes missing))) /\
  (forall planes missing, every_unit_once (snd (fetch_tiles planes missing))) /\
  (forall coin_bytes index_bytes missing, every_unit_once (snd (fetch_reports coin_bytes index_bytes missing))).
Proof.
  repeat split; intros; try apply words_are. unfold fetch_trials. destruct (missing <=? 8); apply words_are.
Qed.

(* The store of words: what does not suffice for a piece, or is another process's after a fork, is dropped, and the
   store is filled anew with bytes that were not drawn before. *)
Fixpoint pieces (capacity : Z) (sizes : list (bool * nat)) (base given : Z) : list (list Z) :=
  match sizes with
  | [] => []
  | (forked, n) :: sizes =>
      let stored := negb forked && (given + Z.of_nat n <=? capacity) in
      let '(base, given) := if stored then (base, given) else (base + capacity, 0) in
      range (base + given) n :: pieces capacity sizes base (given + Z.of_nat n)
  end.

Theorem no_piece_is_given_twice capacity sizes : forall base given, 0 <= given <= capacity ->
  Forall (fun piece => Z.of_nat (snd piece) <= capacity) sizes -> NoDup (concat (pieces capacity sizes base given))
  /\ forall x, In x (concat (pieces capacity sizes base given)) -> base + given <= x.
Proof.
  assert (Behind : forall n s l, (forall x, In x l -> s + Z.of_nat n <= x) -> NoDup l ->
    NoDup (range s n ++ l) /\ forall x, In x (range s n ++ l) -> s <= x).
  { induction n as [|n IH]; intros s l L D; [split; [exact D|intros x X; apply L in X; lia]|].
    destruct (IH (s + 1) l) as [N M]; [intros x X; apply L in X; lia|exact D|]. cbn [range app]. split.
    - constructor; [|exact N]. intros X. apply M in X. lia.
    - intros x [->|X]; [lia|]. apply M in X. lia. }
  induction sizes as [|[forked n] sizes IH]; intros base given G F; [split; [constructor|intros x []]|].
  inversion F as [|? ? Fits]; subst. cbn [snd] in Fits. cbn [pieces].
  destruct (negb forked && (given + Z.of_nat n <=? capacity)) eqn:E; cbn [concat];
    [apply andb_prop in E; destruct E as [_ E]; apply Z.leb_le in E|].
  - destruct (IH base (given + Z.of_nat n)) as [D M]; [lia|assumption|].
    apply Behind; [intros x X; apply M in X; lia|exact D].
  - destruct (IH (base + capacity) (0 + Z.of_nat n)) as [D M]; [lia|assumption|].
    destruct (Behind n (base + capacity + 0) (concat (pieces capacity sizes (base + capacity) (0 + Z.of_nat n))))
      as [D' M']; [intros x X; apply M in X; lia|exact D|].
    split; [exact D'|]. intros x X. apply M' in X. lia.
Qed.
