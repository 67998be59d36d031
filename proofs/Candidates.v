(* The model of a choice among candidates, from the words of a generator to an index: selection.rs, candidates.rs,
   weighing.rs and peeling.rs, for scores in steps of the grid. *)
From Coq Require Import ZArith List Bool Floats.
From Dpnoise Require Import Sound Integers Weights Uniform.
Import ListNotations.
Open Scope Z_scope.

(* Which item a number falls on, when all lie side by side with these lengths; how many there are, if on none. *)
Fixpoint falls_on (v : Z) (lengths : list Z) : nat :=
  match lengths with
  | [] => 0
  | length :: lengths => if v <? length then 0 else S (falls_on (v - length) lengths)
  end.

(* The length of a block, from its weight and the sum of those of its candidates: rounded up. *)
Definition length_by (a sum : Z) : Z := (a * sum + (largest - 1)) / largest.

(* A coin of permute-and-flip: the upper 51 bits of a word. *)
Definition shows_head (weight word : Z) : bool := Z.shiftr word 13 <? weight.

(* The next word of 128 bits, the first byte first. *)
Fixpoint reversed (bytes : nat) (word : Z) : Z :=
  match bytes with O => 0 | S bytes => word mod 256 * 256 ^ Z.of_nat bytes + reversed bytes (word / 256) end.
Fixpoint in_pairs (words : list Z) : list Z :=
  match words with a :: b :: words => reversed 8 a * 2 ^ 64 + reversed 8 b :: in_pairs words | _ => [] end.
Definition below (n : Z) (words : list Z) : drawn Z :=
  match uniform_below n (in_pairs words) with
  | Some (v, rest) => Some (v, skipn (2 * (length (in_pairs words) - length rest)) words)
  | None => None
  end.

Fixpoint in_blocks {A : Type} (fuel size : nat) (items : list A) : list (list A) :=
  match fuel, items with
  | S fuel, _ :: _ => firstn size items :: in_blocks fuel size (skipn size items)
  | _, _ => []
  end.

(* A candidate that was proposed with the weight A length / sum, where A is that of the depth weighed, in units of
   2^-51, and length and sum in units of 2^-62; it is accepted with the quotient of e^(-depth / scale) and that. *)
Record proposal := Proposal { weighed : Z; depth : Z; block_length : Z; block_sum : Z }.

Section Choice.
Variables (l : law) (rate : float) (at_precision : Z -> constants).

Definition part (number bits n : Z) : Z := number * unit n / 2 ^ bits.
Definition proposal_sides (p : proposal) (n : Z) : (Z * Z) * (Z * Z) :=
  let w := times n (part (weight rate (weighed p)) 51 n) (part (block_length p) 62 n) in
  let '(low, high) := density_bounds l at_precision n (depth p) in
  ((w, w), (times n low (part (block_sum p) 62 n), times n high (part (block_sum p) 62 n) + 1)).
Definition accepts (p : proposal) (words : list Z) : drawn bool :=
  match words with word :: words => decide (proposal_sides p) (word / 2) words | [] => None end.

(* Candidates with their indices; those that only fill a block have no score. *)
Definition candidate : Type := (Z * option Z)%type.
Definition best_of (candidates : list candidate) : Z :=
  let scores := flat_map (fun '(_, score) => match score with Some r => [r] | None => [] end) candidates in
  fold_right Z.max (hd 0 scores) scores.
Definition depth_of (best : Z) (c : candidate) : Z :=
  match snd c with Some r => Z.min (best - r) (2 ^ 51) | None => retired end.
Definition block_size (count : nat) : nat := Nat.min 2048 ((count + 7) / 8 * 8).
Definition candidates_of (scores : list Z) : list candidate :=
  let size := block_size (length scores) in
  let count := ((length scores + size - 1) / size * size)%nat in
  combine (indices count) (map Some scores ++ repeat None (count - length scores)).

(* The order in a block: column by column of rows of 8. *)
Definition in_columns (block : list candidate) : list candidate :=
  let rows := in_blocks (length block) 8 block in
  flat_map (fun c => map (fun row => nth c row (0, None)) rows) (seq 0 8).

(* Attempts, each with what the one before left: two at a time, or more, of which the first that is accepted counts. *)
Definition attempt (S : Type) : Type := S -> list Z -> drawn (option Z * S).
Fixpoint several {S : Type} (try : attempt S) (count : nat) (found : option Z) (s : S) (words : list Z)
  : drawn (option Z * S) :=
  match count with
  | O => Some ((found, s), words)
  | Datatypes.S count => bind (try s words) (fun '(now, s) words =>
      several try count (match found with Some _ => found | None => now end) s words)
  end.
Fixpoint until_accepted {S : Type} (try : attempt S) (fuel count : nat) (s : S) (words : list Z) : drawn Z :=
  match fuel with
  | O => None
  | Datatypes.S fuel => bind (several try count None s words) (fun '(found, s) words =>
      match found with Some index => Some (index, words) | None => until_accepted try fuel count s words end)
  end.
Definition at_a_time (count : nat) : nat :=
  if Z.of_nat count <=? 2 ^ 17 then 2 else if Z.of_nat count <=? 2 ^ 28 then 3 else 4.

(* The exponential mechanism: a block by its length, and a candidate of it by its weight. *)
Definition weights_of (block : list candidate) : list Z :=
  let best := best_of block in map (fun c => weight rate (depth_of best c)) block.
Definition length_of (best : Z) (block : list candidate) (weights : list Z) : Z :=
  length_by (weight rate (Z.min (best - best_of block) (2 ^ 51))) (Model.total weights).
Definition try_softmax (best : Z) (blocks : list (list candidate)) : attempt Datatypes.unit :=
  let blocks := map in_columns blocks in
  let weights := map weights_of blocks in
  let lengths := map (fun '(block, weights) => length_of best block weights) (combine blocks weights) in
  fun _ words =>
  bind (below (Model.total lengths) words) (fun v words =>
  let j := falls_on v lengths in
  let '(block, weights) := (nth j blocks [], nth j weights []) in
  bind (below (Model.total weights) words) (fun v words =>
  let i := falls_on v weights in
  let weighed := depth_of (best_of block) (nth i block (0, None)) in
  let depth := Z.min (Z.min (best - best_of block) (2 ^ 51) + weighed) (2 ^ 51) in
  bind (accepts (Proposal weighed depth (nth j lengths 0) (Model.total weights)) words) (fun accepted words =>
  Some ((if accepted then Some (fst (nth i block (0, None))) else None, tt), words)))).
Definition softmax (scores words : list Z) : drawn Z :=
  let all := candidates_of scores in
  let blocks := in_blocks (length all) (block_size (length scores)) all in
  until_accepted (try_softmax (best_of all) blocks) 9 (at_a_time (length all)) tt words.

(* Permute-and-flip: the heads that are left, in the order of the places where a number falls. *)
Definition try_head (best : Z) : attempt (list candidate) := fun heads words =>
  bind (below (Z.of_nat (length heads)) words) (fun v words =>
  let taken := nth_error heads (Z.to_nat v) in
  let depth := match taken with Some c => depth_of best c | None => 0 end in
  bind (accepts (Proposal depth depth (2 ^ 62) (2 ^ 62)) words) (fun accepted words =>
  Some ((match taken with Some c => if accepted then Some (fst c) else None | None => None end,
         firstn (Z.to_nat v) heads ++ skipn (S (Z.to_nat v)) heads), words))).
Definition if_head (best : Z) (c : candidate) (word : Z) : candidate :=
  if shows_head (weight rate (depth_of best c)) word then c else (fst c, None).
Definition permute_and_flip (scores words : list Z) : drawn Z :=
  let all := candidates_of scores in
  let best := best_of all in
  let flipped := map (fun '(c, word) => if_head best c word) (combine all words) in
  let in_order := concat (map in_columns (in_blocks (length all) (block_size (length scores)) flipped)) in
  let heads := filter (fun '(_, score) => match score with Some _ => true | None => false end) in_order in
  if (length words <? length all)%nat then None
  else until_accepted (try_head best) 9 (at_a_time (length all)) heads (skipn (length all) words).
End Choice.
