// Holds nothing: its target is where the headers that the product's sources share are compiled for all of
// them.
