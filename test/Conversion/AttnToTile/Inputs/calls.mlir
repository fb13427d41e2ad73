func.func @nobody(%x: index) -> index {
  return %x : index
}
func.func @inner(%x: index) -> index {
  return %x : index
}
func.func @outer(%x: index) -> index {
  %y = func.call @inner(%x) : (index) -> index
  return %y : index
}
tile.kernel @kernel(%items: !tile.items {tile.arg = "items"}) attributes {level = #tile.level<logical>} {
  tile.for_each (%rows = rows) in %items {
    %y = func.call @outer(%rows) : (index) -> index
  }
}
