(* The model of pages agrees with the code: on every row that the Rust code wrote. *)
From Coq Require Import ZArith List Uint63 Bool.
From Dpnoise Require Import Model Integers PagesModel.
From Dpnoise.generated Require Import PageRows.
Import ListNotations.
Open Scope Z_scope.

Notation word := Uint63.to_Z.

(* Two words, each a fraction and a byte; the page, the entry, and the number by its sign and magnitude. *)
Definition page_agrees (pages : digit) (tables : list digit) (row : int * int * int * int * int * int * bool * int)
  : bool :=
  let '(f, h, g, k, page, entry, negative, magnitude) := row in
  let '(page', entry', number) := run_pages pages tables (word f, word h) (word g, word k) in
  (page' =? word page) && (entry' =? word entry) && (number =? if negative then - word magnitude else word magnitude).

Theorem pages_agree : forallb (fun '(pages, tables, rows) => forallb (page_agrees pages tables) rows) page_rows = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

(* The bounds of the coins that the code has written down, at 256 bits: of some pages, some entries of the first two
   pages, and some magnitudes beyond all pages. Others show tails, at once, where a changed model throws them. *)
Notation known := (list (Z * (Z * Z))).
Definition bounds (lacks : list known) (here : known) (c : coin) (limbs : Z) : Z * Z :=
  let '(list, i) := match c with
    | OfPage page => (nth 0 lacks [], page)
    | OfEntry page e => (nth (Z.to_nat page + 1) lacks [], e)
    | Here magnitude => (here, magnitude)
    end in
  match find (fun '(j, _) => (i =? j) && (limbs =? 4)) list with Some (_, found) => found | None => (0, 0) end.

(* Two words and further ones; the number, and how many words were left. *)
Definition rest_agrees (pages : digit) (tables : list digit) (lacks : list known) (here : known)
  (row : Z * Z * Z * Z * list Z * Z * Z) : bool :=
  let '(f, h, g, k, words, number, remaining) := row in
  match run (sides_of (bounds lacks here)) (number_of_pages 9 pages tables (f, h) (g, k)) words with
  | Some (number', words) => (number =? number') && (Z.of_nat (length words) =? remaining)
  | None => false
  end.

Theorem rests_agree : forallb (fun '(pages, tables, lacks, here, rows) =>
  forallb (rest_agrees pages tables lacks here) rows) rest_rows = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

From Coq Require Import String.
Definition counts := [("pages and entries", fold_right (fun '(_, _, rows) n => List.length rows + n) 0 page_rows);
  ("numbers with a rest", fold_right (fun '(_, _, _, _, rows) n => List.length rows + n) 0 rest_rows)]%string%nat.
