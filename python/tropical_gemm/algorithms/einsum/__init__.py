"""Tensor networks over semirings."""

from ._contract import ContractExpression, EinsumResult, contract_expression, einsum

__all__ = ["ContractExpression", "EinsumResult", "contract_expression", "einsum"]
