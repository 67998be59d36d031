(* The models of coins, programs that Coq runs: bits flipped on planes, as planes.rs does it; Bernoulli samples of any
   double as the probability; and k-ary reports, by a coin that keeps the value or a uniform index, as mixture.rs makes
   them. *)
From Coq Require Import ZArith List Bool.
From Dpnoise Require Import Words.
Import ListNotations.
Open Scope Z_scope.

(* What a function gives for the lanes 0, 1, ..., n - 1. *)
Fixpoint each_from {A} (n : nat) (i : Z) (f : Z -> A) : list A :=
  match n with O => [] | S n => f i :: each_from n (i + 1) f end.
Definition each {A} (n : nat) (f : Z -> A) : list A := each_from n 0 f.
Definition bits (n : nat) (x : Z) : list bool := each n (Z.testbit x).

(* Whether two lists are the same. *)
Fixpoint are {A} (eqb : A -> A -> bool) (xs ys : list A) : bool :=
  match xs, ys with [], [] => true | x :: xs, y :: ys => eqb x y && are eqb xs ys | _, _ => false end.

(* One plane, as planes.rs works on it: the digits of p and q, the data, and what is decided by the planes before. *)
Definition plane (ones data : Z) (p q : bool) (u decided : Z) : Z :=
  let inverse := Z.lxor u ones in
  let both := Z.land inverse decided in
  let either := Z.lxor both (Z.lxor inverse decided) in
  match p, q with
  | false, false => both
  | true, true => either
  | true, false => Z.lxor both (Z.land data (Z.lxor inverse decided))
  | false, true => Z.lxor either (Z.land data (Z.lxor inverse decided))
  end.

Fixpoint flip_from (ones data p q : Z) (random : list Z) (decided : Z) : Z :=
  match random with
  | [] => decided
  | u :: random =>
      flip_from ones data (Z.div2 p) (Z.div2 q) random (plane ones data (Z.odd p) (Z.odd q) u decided)
  end.

(* n bits of data, flipped. *)
Definition flip (n : nat) (p q : Z) (random : list Z) (data : Z) : Z :=
  flip_from (Z.ones (Z.of_nat n)) data p q random 0.

(* The coin of p = n / 2^d, as bernoulli.rs makes it. K is the number of digits of p, up to 64; None if p has more. *)
Definition digits (n d : Z) : option nat := find (fun k => n * 2^ k mod 2 ^ d =? 0) (seq 0 65).
Definition planes (n d : Z) : nat := match digits n d with Some k => k | None => 64 end.
Definition threshold (n d : Z) : Z := (n * 2^ (planes n d) / 2 ^ d).
Definition rest (n d : Z) : Z := (n * 2 ^ 64 mod 2 ^ d).

(* An open coin, of probability r / 2^d, and the words that are left; None where they do not suffice. *)
Fixpoint further_digits (d r : Z) (words : list Z) : option (bool * list Z) :=
  if (r =? 0) then Some (false, words) else
  match words with
  | [] => None
  | word :: words =>
      let scaled := Z.shiftl r 64 in
      let digits := Z.shiftr scaled d in
      if (word =? digits) then further_digits d (scaled - Z.shiftl digits d) words
      else Some ((word <? digits), words)
  end.

(* Coins that are below T, and below T + 1. *)
Fixpoint resolve (d r : Z) (coins : list (bool * bool)) (words : list Z) : option (list bool * list Z) :=
  match coins with
  | [] => Some ([], words)
  | (coin, at_most) :: coins =>
      match (if xorb coin at_most then further_digits d r words else Some (false, words)) with
      | Some (further, words) =>
          match resolve d r coins words with
          | Some (coins, words) => Some (coin || further :: coins, words)
          | None => None
          end
      | None => None
      end
  end.

(* A tile: its coins, and the words that are left. *)
Definition tile (lanes : nat) (n d : Z) (random words : list Z) : option (list bool * list Z) :=
  let t := threshold n d in
  match planes n d, digits n d with
  | O, _ => Some (each lanes (fun _ => t =? 1), words)
  | _, Some _ => Some (bits lanes (flip lanes t t random 0), words)
  | _, None =>
      let coins := flip lanes t t random 0 in
      let at_most := flip lanes (t + 1) (t + 1) random 0 in
      resolve d (rest n d) (each lanes (fun i => (Z.testbit coins i, Z.testbit at_most i))) words
  end.

(* The bits of a coin and of an index word. *)
Definition coin_bits (planes : Z) : nat := if (planes <=? 16) then 16 else if (planes <=? 32) then 32 else 64.
Definition index_bits (k : Z) : nat := if (k <=? 256) then 16 else 32.

(* Whether a coin of c bits keeps the value: it is below keep / 2^planes. *)
Definition is_kept (c : nat) (planes keep coin : Z) : bool := (coin <? Z.shiftl keep (Z.of_nat c - planes)).

(* An index below k of a word of b bits, unless the word is rejected. *)
Definition value_of (b : nat) (k word : Z) : Z := (word * k / 2^ b).
Definition is_rejected (b : nat) (k word : Z) : bool := (word * k mod 2^ b <? 2^ b mod k).

(* The index of the first word that is not rejected, and the words that are left. *)
Fixpoint index (b : nat) (k : Z) (words : list Z) : option (Z * list Z) :=
  match words with
  | [] => None
  | word :: words => if is_rejected b k word then index b k words else Some (value_of b k word, words)
  end.

(* A word for each index, then further words for those that are rejected, in the order of indices. *)
Fixpoint indices (b : nat) (k : Z) (words further : list Z) : option (list Z * list Z) :=
  match words with
  | [] => Some ([], further)
  | word :: words =>
      match index b k (word :: further) with
      | Some (x, further) =>
          match indices b k words further with Some (xs, further) => Some (x :: xs, further) | None => None end
      | None => None
      end
  end.

Definition report (c : nat) (planes keep value coin other : Z) : Z :=
  if is_kept c planes keep coin then value else other.

Fixpoint reports (c : nat) (planes keep : Z) (values coins others : list Z) : list Z :=
  match values, coins, others with
  | value :: values, coin :: coins, other :: others =>
      report c planes keep value coin other :: reports c planes keep values coins others
  | _, _, _ => []
  end.

(* The reports of a chunk of values, and the words that are left. *)
Definition mix (k planes keep : Z) (values coins words further : list Z) : option (list Z * list Z) :=
  match indices (index_bits k) k words further with
  | Some (others, further) => Some (reports (coin_bits planes) planes keep values coins others, further)
  | None => None
  end.
