(* The models of coins and of k-ary reports agree with the code, on every row that it wrote. *)
From Coq Require Import ZArith List Bool Uint63.
From Dpnoise Require Import CoinsModel.
From Dpnoise.generated Require Import Flips Mixtures.
Import ListNotations.
Open Scope Z_scope.

(* Numbers have digits to the base 2^60, lowest first. *)
Definition value (digits : number) : Z := fold_right (fun digit n => Z.shiftl n 60 + Uint63.to_Z digit) 0 digits.

(* Thresholds, planes of 512 lanes, data bits, and what they become. *)
Definition flip_agrees (row : number * number * list number * number * number) : bool :=
  let '(p, q, random, data, flipped) := row in
  flip 512 (value p) (value q) (map value random) (value data) =? value flipped.

(* The probability n / 2^d, planes and further words; a tile's coins and the words left, if there were enough. *)
Definition toss_agrees (row : int * int * list number * list number * option (number * int)) : bool :=
  let '(n, d, random, words, tossed) := row in
  let '(n, d) := (Uint63.to_Z n, Uint63.to_Z d) in
  (length random =? planes n d)%nat &&
  match tile 512 n d (map value random) (map value words), tossed with
  | Some (coins, remaining), Some (coins', remaining') =>
      are Bool.eqb coins (bits 512 (value coins')) && (Z.of_nat (length remaining) =? Uint63.to_Z remaining')
  | None, None => true
  | _, _ => false
  end.

(* A mixture of k values, by its planes and keep; values, coins in two halves each, index words and further ones;
   reports and how many words were left, if there were enough. *)
Fixpoint joined (halves : list int) : list Z :=
  match halves with
  | high :: low :: halves => Z.shiftl (Uint63.to_Z high) 32 + Uint63.to_Z low :: joined halves
  | _ => []
  end.

Definition mixture_agrees
  (row : int * int * int * list int * list int * list int * list int * option (list int * int)) : bool :=
  let '(k, planes, keep, values, coins, words, further, mixed) := row in
  let numbers := map Uint63.to_Z in
  match mix (Uint63.to_Z k) (Uint63.to_Z planes) (Uint63.to_Z keep) (numbers values) (joined coins) (numbers words)
    (numbers further), mixed with
  | Some (reports, remaining), Some (reports', remaining') =>
      are Z.eqb reports (numbers reports') && (Z.of_nat (length remaining) =? Uint63.to_Z remaining')
  | None, None => true
  | _, _ => false
  end.

Theorem flips_agree : forallb flip_agrees flips = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Theorem tosses_agree : forallb toss_agrees tosses = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Theorem mixtures_agree : forallb mixture_agrees mixtures = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

(* How many rows, each of 512 bits or coins or of 48 reports. *)
From Coq Require Import String.
Definition counts := [("tiles of flips", List.length flips); ("tiles of coins", List.length tosses);
  ("chunks of reports", List.length mixtures)]%string.
