(* Inequalities between real numbers that Coq decides by computing with intervals of 110 bits. *)
From Coq Require Import Reals ZArith.
From Interval Require Import Specific_bigint Specific_ops Float_full Interval Xreal Basic Sig.

Module Numbers := SpecificFloat BigIntRadix2.
Module Bounds := FloatIntervalFull Numbers.

Inductive term := Whole (z : Z) | Add (a b : term) | Sub (a b : term) | Mul (a b : term) | Div (a b : term) | Exp (a :
  term) | Log2.

Fixpoint denote (t : term) : R :=
  match t with
  | Whole z => IZR z
  | Add a b => denote a + denote b
  | Sub a b => denote a - denote b
  | Mul a b => denote a * denote b
  | Div a b => denote a / denote b
  | Exp a => exp (denote a)
  | Log2 => ln 2
  end.

Definition precision := Numbers.PtoP 110.

Fixpoint bounds (t : term) : Bounds.type :=
  match t with
  | Whole z => Bounds.fromZ precision z
  | Add a b => Bounds.add precision (bounds a) (bounds b)
  | Sub a b => Bounds.sub precision (bounds a) (bounds b)
  | Mul a b => Bounds.mul precision (bounds a) (bounds b)
  | Div a b => Bounds.div precision (bounds a) (bounds b)
  | Exp a => Bounds.exp precision (bounds a)
  | Log2 => Bounds.ln precision (Bounds.fromZ precision 2)
  end.

Arguments contains : simpl never.

Lemma contains_any i x : contains i Xnan -> contains i x.
Proof. destruct i; [reflexivity|intros []]. Qed.

Lemma bounds_correct t : contains (Bounds.convert (bounds t)) (Xreal (denote t)).
Proof.
  induction t; simpl.
  - apply Bounds.fromZ_correct.
  - exact (Bounds.add_correct precision _ _ (Xreal _) (Xreal _) IHt1 IHt2).
  - exact (Bounds.sub_correct precision _ _ (Xreal _) (Xreal _) IHt1 IHt2).
  - exact (Bounds.mul_correct precision _ _ (Xreal _) (Xreal _) IHt1 IHt2).
  - generalize (Bounds.div_correct precision _ _ (Xreal _) (Xreal _) IHt1 IHt2). simpl. unfold Xdiv'.
    destruct (is_zero (denote t2)); [apply contains_any|exact (fun x => x)].
  - exact (Bounds.exp_correct precision _ (Xreal _) IHt).
  - generalize (Bounds.ln_correct precision _ (Xreal 2) (Bounds.fromZ_correct precision 2)). simpl. unfold Xln'.
    destruct (is_positive 2); [exact (fun x => x)|apply contains_any].
Qed.

(* Whether a <= b was found to hold; false says nothing. *)
Definition below (i j : Bounds.type) : bool :=
  match Bounds.sign_large (Bounds.sub precision j i) with Xeq | Xgt => true | _ => false end.
Definition at_most (a b : term) : bool := below (bounds a) (bounds b).

Lemma below_correct i j x y : contains (Bounds.convert i) (Xreal x) -> contains (Bounds.convert j) (Xreal y) ->
  below i j = true -> (x <= y)%R.
Proof.
  intros I J. unfold below. generalize (Bounds.sign_large_correct (Bounds.sub precision j i))
    (Bounds.sub_correct precision _ _ _ _ J I). intros H C.
  destruct (Bounds.sign_large (Bounds.sub precision j i)); try discriminate; intros _; apply Rge_le, Rminus_ge, Rle_ge.
  - assert (E := H _ C). injection E. simpl. intros ->. apply Rle_refl.
  - destruct (H _ C) as [_ P]. exact P.
Qed.

Theorem at_most_correct a b : at_most a b = true -> (denote a <= denote b)%R.
Proof. apply below_correct; apply bounds_correct. Qed.
